package kafka_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
)

func TestOpenRefuses(t *testing.T) {
	brokers := fakeBrokers(t)
	openPrefix(t, brokers, 3, "taken.")
	for want, config := range map[string]kafka.Config{
		"Brokers":             {Partitions: 1},
		"Partitions is 0":     {Brokers: brokers},
		"Partitions is 65536": {Brokers: brokers, Partitions: 65536},
		"Replicas":            {Brokers: brokers, Partitions: 1, Replicas: -1},
		"Retention":           {Brokers: brokers, Partitions: 1, Retention: -1},
		"the mechanism \"none\"": {Brokers: brokers, Partitions: 1,
			SASL: &kafka.SASL{Mechanism: "none"}},
		"has 3 partitions, but": {Brokers: brokers, Partitions: 4, Prefix: "taken."},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := kafka.Open(ctx, config)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) ||
			errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v: error %v, want one that says %q at once", config, err, want)
		}
	}
}

// TestNoBrokers: calls that need brokers fail when their context ends, and say why.
func TestNoBrokers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := kafka.Open(ctx, kafka.Config{Brokers: []string{"127.0.0.1:1"}, Partitions: 1})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Open: %v, want a deadline and the reason", err)
	}
}

// lines is a log that calls a function with each line.
type lines func(line string)

func (l lines) Write(line []byte) (int, error) {
	l(string(line))
	return len(line), nil
}

// TestNoBrokersAreToldAtOnce: the first try tells the log. The clock stands, so there is no second.
func TestNoBrokersAreToldAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var told string
	log := slog.New(slog.NewTextHandler(lines(func(line string) { told = line; cancel() }), nil))
	_, err := kafka.Open(ctx, kafka.Config{Brokers: []string{"127.0.0.1:1"}, Partitions: 1,
		Clock: clock.NewManual(time.Unix(1_800_000_000, 0)), Logger: log})
	if !errors.Is(err, context.Canceled) || !strings.Contains(told, "127.0.0.1:1") {
		t.Errorf("the log says %q, then %v", told, err)
	}
}

// TestBrokersGone: calls end with their contexts, and Close returns.
func TestBrokersGone(t *testing.T) {
	fake := fakeCluster(t)
	log := openPrefix(t, fake.ListenAddrs(), 2, "gone.")
	r, err := log.Consume(stream.Pages, "group")
	if err != nil {
		t.Fatal(err)
	}
	fake.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := log.TryPublish(stream.Tasks, 0, []byte("lost")); err != nil {
		t.Error(err)
	}
	if err := log.Publish(ctx, stream.Tasks, 0, []byte("x")); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("Publish: %v", err)
	}
	if _, err := r.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Fetch: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if lost := log.Counts()[stream.Tasks].Lost; lost != 1 {
		t.Errorf("%d records lost, want 1", lost)
	}
}

// refuseProduce answers the next produce requests with the error code that refuses returns for each
// partition.
func refuseProduce(fake *kfake.Cluster, times int,
	refuses func(partition kmsg.ProduceRequestTopicPartition) int16) {
	fake.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if times--; times < 0 {
			return nil, nil, false
		}
		r := request.(*kmsg.ProduceRequest)
		response := r.ResponseKind().(*kmsg.ProduceResponse)
		refused := false
		for _, topic := range r.Topics {
			t := kmsg.NewProduceResponseTopic()
			t.Topic = topic.Topic
			for _, partition := range topic.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, refuses(partition)
				refused = refused || p.ErrorCode != 0
				t.Partitions = append(t.Partitions, p)
			}
			response.Topics = append(response.Topics, t)
		}
		return response, nil, refused
	})
}

// TestOrderAcrossFailures: failed batches are repeated before any later ones, whatever the error
// makes us do about the cluster.
func TestOrderAcrossFailures(t *testing.T) {
	for _, failure := range []*kerr.Error{kerr.NotEnoughReplicas, kerr.NotLeaderForPartition,
		kerr.UnknownTopicOrPartition, kerr.RequestTimedOut} {
		t.Run(failure.Message, func(t *testing.T) { testOrderAcrossFailures(t, failure.Code) })
	}
}

func testOrderAcrossFailures(t *testing.T, code int16) {
	fake := fakeCluster(t)
	log := openPrefix(t, fake.ListenAddrs(), 1, "order.")
	r, err := log.Tail(stream.Tasks, 0)
	if err != nil {
		t.Fatal(err)
	}
	refuseProduce(fake, 5, func(kmsg.ProduceRequestTopicPartition) int16 { return code })
	const n = 200
	var publishing sync.WaitGroup
	for i := range n {
		if err := log.TryPublish(stream.Tasks, 0, numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	publishing.Go(func() {
		if err := log.Publish(t.Context(), stream.Tasks, 0, numbered(n)); err != nil {
			t.Error(err)
		}
	})
	got := newArrivals(1)
	for got.missing([]int{n + 1}) > 0 {
		messages, err := r.Fetch(t.Context(), 100)
		if err == nil {
			err = got.add(messages)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	publishing.Wait()
	counts := log.Counts()[stream.Tasks]
	if counts.Published != n+1 || counts.Retries != 5 || counts.Fetched != n+1 || counts.Lost != 0 {
		t.Errorf("%+v", counts)
	}
}

// TestTooLargeForBroker: a topic made by others may accept less than we do. Only the refused record
// fails.
func TestTooLargeForBroker(t *testing.T) {
	const most = 1000
	fake := fakeCluster(t)
	log := openPrefix(t, fake.ListenAddrs(), 1, "small.")
	r, err := log.Tail(stream.Pages, 0)
	if err != nil {
		t.Fatal(err)
	}
	refuseProduce(fake, 20, func(partition kmsg.ProduceRequestTopicPartition) int16 {
		if len(partition.Records) > most {
			return kerr.MessageTooLarge.Code
		}
		return 0
	})
	if err := log.TryPublish(stream.Pages, 0, []byte("first"), make([]byte, most),
		[]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := log.Publish(t.Context(), stream.Pages, 0, make([]byte, most)); !errors.Is(err,
		stream.ErrTooLarge) {
		t.Errorf("Publish: %v", err)
	}
	for _, want := range []string{"first", "last"} {
		messages, err := r.Fetch(t.Context(), 1)
		if err != nil || string(messages[0].Value) != want {
			t.Fatalf("messages %v, error %v, want %q", messages, err, want)
		}
	}
	if lost := log.Counts()[stream.Pages].Lost; lost != 1 {
		t.Errorf("%d lost, want 1", lost)
	}
}
