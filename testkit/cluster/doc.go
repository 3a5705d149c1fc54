// Package cluster runs the real binary as a cluster of processes on one machine (Linux, as root).
// Nodes have roles and identities, each in a network namespace of its own, on real Kafka, Redis and
// ClickHouse. Nodes and services can be killed, paused and cut off from each other. They can be
// given a full disk, a wrong clock or too little memory, and brought back. It owns the processes
// and what is done to them; what they do is for the suites to judge (e2e/cluster).
//
// The services are those of KAFKA_BROKERS, REDIS_ADDR and CLICKHOUSE_URL. Each cluster has topics,
// a database and keys of its own there. SHOAL_SERVICES is the folder of the scripts that stop and
// start them.
package cluster
