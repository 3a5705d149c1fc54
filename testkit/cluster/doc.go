// Package cluster runs the real binary as a cluster of processes on one machine (Linux, as root).
// Each node has its own network namespace, roles and identity, and uses real Kafka, Redis and
// ClickHouse. Nodes and services can be killed, paused, cut off from each other, and brought back.
// Nodes can be given a full disk, a wrong clock or too little memory. It owns the processes and
// what is done to them; the suites judge what they do (e2e/cluster).
//
// The services are those of KAFKA_BROKERS, REDIS_ADDR and CLICKHOUSE_URL. Each cluster has its own
// topics, database and keys there. SHOAL_SERVICES is the folder of the scripts that stop and start
// them.
package cluster
