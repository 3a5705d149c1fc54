package kafka_test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/stream"
)

// cpu returns the CPU time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure reports records per second and this process's CPU time per record.
func measure(b *testing.B, records int, run func()) {
	b.Helper()
	before, start := cpu(b), time.Now()
	b.ResetTimer()
	run()
	b.StopTimer()
	b.ReportMetric(float64(records)/time.Since(start).Seconds(), "records/s")
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(records), "cpu-ns/record")
}

const (
	benchPartitions = 64
	benchBytes      = 300
	benchBatch      = 100
)

// publishEach publishes n batches, in turn to the partitions, one at a time in each.
func publishEach(b *testing.B, log stream.Log, topic stream.Topic, n int) {
	b.Helper()
	var publishing sync.WaitGroup
	for partition := range benchPartitions {
		publishing.Go(func() {
			for i := partition; i < n; i += benchPartitions {
				records := make([][]byte, benchBatch)
				for j := range records {
					records[j] = make([]byte, benchBytes)
				}
				if err := log.Publish(b.Context(), topic, partition, records...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	publishing.Wait()
}

// BenchmarkPublish publishes batches of 100 records of 300 bytes to 64 partitions.
func BenchmarkPublish(b *testing.B) {
	log := open(b, realBrokers(b), benchPartitions)
	publishEach(b, log, stream.Pages, benchPartitions)
	measure(b, b.N*benchBatch, func() { publishEach(b, log, stream.Pages, b.N) })
}

// BenchmarkConsume reads and commits what was published before.
func BenchmarkConsume(b *testing.B) {
	log := open(b, realBrokers(b), benchPartitions)
	publishEach(b, log, stream.Pages, b.N)
	r, err := log.Consume(stream.Pages, "bench")
	if err != nil {
		b.Fatal(err)
	}
	measure(b, b.N*benchBatch, func() {
		for n := 0; n < b.N*benchBatch; {
			messages, err := r.Fetch(b.Context(), 2000)
			if err == nil {
				err = r.Commit(b.Context(), messages)
			}
			if err != nil {
				b.Fatal(err)
			}
			n += len(messages)
		}
	})
}

// BenchmarkTry measures the path of leaders and fetchers: single records to 64 partitions, read by
// 64 tails.
func BenchmarkTry(b *testing.B) {
	log := open(b, realBrokers(b), benchPartitions)
	var tails []stream.Reader
	for partition := range benchPartitions {
		r, err := log.Tail(stream.Tasks, partition)
		if err != nil {
			b.Fatal(err)
		}
		tails = append(tails, r)
	}
	measure(b, b.N, func() {
		var running sync.WaitGroup
		for partition, r := range tails {
			running.Go(func() {
				want := (b.N - partition + benchPartitions - 1) / benchPartitions
				for got := 0; got < want; {
					messages, err := r.Fetch(b.Context(), 100)
					if err != nil {
						b.Error(err)
						return
					}
					got += len(messages)
				}
			})
		}
		for i := range b.N {
			for log.TryPublish(stream.Tasks, i%benchPartitions, make([]byte, benchBytes)) != nil {
				<-time.After(time.Millisecond) // full
			}
		}
		running.Wait()
	})
}
