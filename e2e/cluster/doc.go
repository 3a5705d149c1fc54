// Package cluster proves that many processes keep the promises of one. It runs the scenarios of
// package suite on a cluster, the fault matrix, and histories of concurrent clients under leader
// kills. It also measures failover times, and tests rolling upgrades and scale. Real processes run
// on real Kafka, Redis and ClickHouse (testkit/cluster). It needs Linux, root, iproute2, and the
// variables KAFKA_BROKERS, REDIS_ADDR, CLICKHOUSE_URL and SHOAL_SERVICES. Without them its tests
// are skipped, or fail if SHOAL_CLUSTER_SUITE=1 is set.
//
// One cell of the matrix, with three seeds from 7 on, and with the processes' logs if it fails:
//
//	go test ./e2e/cluster -run 'TestFaults/pause/leader' \
//	  -faults all -fault-seed 7 -fault-seeds 3 -v
//
// Without -faults all, TestFaults runs the bounded selection that CI runs. Each cell has its own
// cluster, topics, database and keys. A fault is one function and one line in the table of
// faults_test.go. The nightly run also causes the problems that alerts report (-troubles), and
// rolls an upgrade back (-roll-back).
//
// It owns no part of the product.
package cluster
