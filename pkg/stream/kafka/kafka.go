// Package kafka is the log on a Kafka cluster. It owns the three topics there (it creates and
// re-creates them), the queues of records to write, and the membership of consumer groups. It does
// not know what records mean. DESIGN.md says what it guarantees and why.
package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	segmentio "github.com/segmentio/kafka-go"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/stream"
)

// Defaults of Config.
const (
	DefaultPrefix    = "shoal."
	DefaultRetention = 24 * time.Hour
	DefaultReplicas  = 3
)

// Config says where the cluster is and how its topics are set up. Only Brokers and Partitions have
// no default.
type Config struct {
	// Brokers are the addresses HOST:PORT of some brokers; the others are learned from them.
	Brokers []string
	// Prefix begins the names of topics and groups, so that several logs can share one cluster.
	Prefix string
	// Partitions of each topic, 1 to 65,535. Existing topics must have the same number.
	Partitions int
	// Replicas of each partition, in topics that are made here. 0 means 3, or the number of brokers
	// if smaller. With 3 or more, a record counts as written once 2 replicas have it. Existing
	// topics with less are an error, or for 0 a warning.
	Replicas int
	// Retention is how long a record is kept, read or not, in topics that are made here.
	Retention time.Duration
	// Node names this process to the brokers.
	Node string
	// TLS is for connections to the brokers; nil: no TLS.
	TLS *tls.Config
	// SASL is how to sign in at the brokers; nil: no sign-in.
	SASL *SASL

	Logger *slog.Logger
	Clock  clock.Clock
}

// Counts are totals for one topic since the log was opened.
type Counts struct {
	Published  uint64 // records acknowledged by the brokers
	Lost       uint64 // records that TryPublish accepted but that could not be written
	Fetched    uint64 // records delivered to readers
	Retries    uint64 // failed and repeated requests about a partition
	Rebalances uint64 // generations of groups that members in this process joined
}

type counters struct{ published, lost, fetched, retries, rebalances atomic.Uint64 }

// Log is a stream.Log on a Kafka cluster. Its calls outlast the absence of brokers: they repeat,
// with pauses of at most a second, until their context ends or the log is closed.
type Log struct {
	config   Config
	cluster  *cluster
	producer *producer
	counters []counters // by topic
	ctx      context.Context
	cancel   context.CancelFunc

	mu     sync.Mutex
	closed bool
	tails  []*poller             // by topic; nil before the first Tail
	tailOf []map[int]*tailReader // by topic, by partition
	// by topic: every group ever consumed or watched here, with its open members
	groups []map[string]*membership
	lags   []lag         // by topic
	ended  chan struct{} // closed when Close has finished
}

var _ stream.Log = (*Log)(nil)

// Open connects and creates the missing topics. It repeats what fails until ctx ends. It fails at
// once if the config is invalid or a topic has another number of partitions.
func Open(ctx context.Context, config Config) (*Log, error) {
	cluster, err := newCluster(&config)
	if err != nil {
		return nil, err
	}
	topics := len(stream.Topics())
	l := &Log{config: config, cluster: cluster, counters: make([]counters, topics),
		tails:  make([]*poller, topics),
		tailOf: make([]map[int]*tailReader, topics), groups: make([]map[string]*membership, topics),
		lags: make([]lag, topics), ended: make(chan struct{})}
	if err := cluster.makeTopics(ctx); err != nil {
		cluster.close()
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for topic := range topics {
		l.tailOf[topic], l.groups[topic] = map[int]*tailReader{}, map[string]*membership{}
	}
	cluster.start()
	l.producer = newProducer(cluster, l.counters)
	return l, nil
}

// Embedded implements stream.Log.
func (*Log) Embedded() bool { return false }

// Partitions returns the configured number of partitions.
func (l *Log) Partitions() int { return l.config.Partitions }

// Publish waits until every in-sync replica has the records.
func (l *Log) Publish(ctx context.Context, topic stream.Topic, partition int,
	records ...[]byte) error {
	if err := stream.CheckPublish(l, topic, partition, records); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.producer.publish(ctx, topic, partition, records)
}

// TryPublish queues the records in this process. They are lost if they cannot be written in time,
// or if the process ends. Records that are written are in order.
func (l *Log) TryPublish(topic stream.Topic, partition int, records ...[]byte) error {
	if err := stream.CheckPublish(l, topic, partition, records); err != nil {
		return err
	}
	return l.producer.tryPublish(topic, partition, records)
}

// Counts is safe to call at any time.
func (l *Log) Counts() map[stream.Topic]Counts {
	counts := map[stream.Topic]Counts{}
	for _, topic := range stream.Topics() {
		c := &l.counters[topic]
		counts[topic] = Counts{Published: c.published.Load(), Lost: c.lost.Load(),
			Fetched: c.fetched.Load(),
			Retries: c.retries.Load(), Rebalances: c.rebalances.Load()}
	}
	return counts
}

// Repeated returns how many requests about a topic's partitions failed and were repeated.
func (l *Log) Repeated(topic stream.Topic) uint64 { return l.counters[topic].retries.Load() }

// Close gives queued records a second to be written. Then it ends every call, leaves the groups and
// closes all connections.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return nil
	}
	l.closed = true
	var readers []stream.Reader
	for topic := range l.tails {
		for _, tail := range l.tailOf[topic] {
			readers = append(readers, tail)
		}
		for _, membership := range l.groups[topic] {
			for m := range membership.members {
				readers = append(readers, m)
			}
		}
	}
	l.mu.Unlock()
	l.producer.close()
	l.cancel()
	var closing sync.WaitGroup
	for _, r := range readers {
		closing.Go(func() { _ = r.Close() })
	}
	closing.Wait()
	for _, p := range l.tails {
		if p != nil {
			p.close()
		}
	}
	l.cluster.close()
	close(l.ended)
	return nil
}

// pauses are the waits after failures in a row.
var pauses = retry.Backoff{First: 50 * time.Millisecond, Most: time.Second}

// worthWarning reports whether to log a failure: the fourth in a row, the eighth, and so on. A
// leader's move costs fewer.
func worthWarning(failures int) bool { return failures >= 4 && failures&(failures-1) == 0 }

// errorOf returns the error for a response's error code.
func errorOf(code int16) error {
	if code == 0 {
		return nil
	}
	return segmentio.Error(code)
}

// attempt calls try until it succeeds or ctx ends. Then it returns the last error, too.
func (c *cluster) attempt(ctx context.Context, what string, try func(context.Context) error) error {
	for failures := 1; ; failures++ {
		err := try(ctx)
		if err == nil || errors.Is(err, errForGood) || errors.Is(err, stream.ErrClosed) {
			return err
		}
		if ctx.Err() == nil && worthWarning(failures) {
			c.config.Logger.Warn("kafka: repeating", "call", what, "failures", failures, "error",
				err)
		}
		if !pauses.Wait(ctx, c.config.Clock, failures) {
			return fmt.Errorf("kafka: %s: %w: %w", what, ctx.Err(), err)
		}
	}
}

// errForGood is wrapped by errors that repeating does not cure.
var errForGood = errors.New("kafka")
