// Package cluster proves that many processes keep what one does. It has the scenarios of package
// suite on a cluster, the fault matrix, and histories of concurrent clients under leader kills. It
// also has failover times, rolling upgrades, and scale. Real processes run on real Kafka, Redis and
// ClickHouse (testkit/cluster); it needs Linux, root, iproute2, and the variables KAFKA_BROKERS,
// REDIS_ADDR, CLICKHOUSE_URL and SHOAL_SERVICES. Without them its tests are skipped, and fail where
// SHOAL_CLUSTER_SUITE=1 is set.
//
// One cell of the matrix, with three seeds, from 7 on, and with the processes' logs when it fails:
//
//	go test ./e2e/cluster -run 'TestFaults/pause/leader' \
//	  -faults all -fault-seed 7 -fault-seeds 3 -v
//
// Without -faults all, TestFaults runs the bounded selection that CI runs. Each cell has its own
// cluster, topics, database and keys. A fault is one function and one line in the table of
// faults_test.go. A night also makes the troubles that alerts have to tell (-troubles), and rolls
// an upgrade back (-roll-back).
//
// It owns no part of the product.
package cluster
