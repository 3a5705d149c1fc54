package kafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
)

// services runs a command of the folder that starts and stops the brokers: down NAME, down --kill
// NAME, or start NAME.
func services(t *testing.T, command string, arguments ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), filepath.Join(servicesFolder(t), command),
		arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", command, arguments, err, output)
	}
}

func servicesFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("SHOAL_SERVICES")
	if folder == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("SHOAL_SERVICES is not set: the folder with the commands that stop and " +
				"start brokers")
		}
		t.Skip("SHOAL_SERVICES is not set")
	}
	return folder
}

// awaitGone waits until nobody listens at an address: brokers take time to stop.
func awaitGone(t *testing.T, address string) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	patience := time.After(time.Minute)
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return
		}
		conn.Close()
		select {
		case <-again.C:
		case <-patience:
			t.Fatalf("%s still listens", address)
		}
	}
}

// awaitInSync waits until all partitions have all their replicas, as one should between restarts.
func awaitInSync(t *testing.T, brokers []string, log *kafka.Log) {
	t.Helper()
	transport := &segmentio.Transport{Context: t.Context(), MetadataTTL: time.Second}
	defer transport.CloseIdleConnections()
	client := segmentio.Client{Addr: segmentio.TCP(brokers...), Transport: transport}
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	patience := time.After(2 * time.Minute)
	for {
		behind := 1
		if known, err := client.Metadata(t.Context(),
			&segmentio.MetadataRequest{Topics: log.TopicNames()}); err == nil {
			behind = len(brokers) - len(known.Brokers)
			for _, topic := range known.Topics {
				for _, partition := range topic.Partitions {
					behind += len(partition.Replicas) - len(partition.Isr)
				}
			}
		}
		if behind == 0 {
			return
		}
		select {
		case <-again.C:
		case <-patience:
			t.Fatalf("%d replicas are behind", behind)
		}
	}
}

func numbered(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// traffic publishes numbered records, one after the other, into all partitions of a topic until it
// is stopped. It repeats a failed Publish, as a fetcher does.
type traffic struct {
	log       stream.Log
	topic     stream.Topic
	stop      chan struct{}
	running   sync.WaitGroup
	mu        sync.Mutex
	published []int // number of acknowledged records by partition
}

func startTraffic(t *testing.T, log stream.Log, topic stream.Topic) *traffic {
	t.Helper()
	tr := &traffic{log: log, topic: topic, stop: make(chan struct{}),
		published: make([]int, log.Partitions())}
	for partition := range log.Partitions() {
		tr.running.Go(func() {
			// do not overload the brokers
			next := time.NewTicker(20 * time.Millisecond)
			defer next.Stop()
			for n := 0; ; n++ {
				select {
				case <-tr.stop:
					return
				case <-next.C:
				}
				for log.Publish(t.Context(), topic, partition, numbered(n)) != nil {
					if t.Context().Err() != nil {
						return
					}
				}
				tr.mu.Lock()
				tr.published[partition]++
				tr.mu.Unlock()
			}
		})
	}
	return tr
}

// end stops and returns the number of published records by partition.
func (tr *traffic) end() []int {
	close(tr.stop)
	tr.running.Wait()
	return tr.published
}

// await waits until each partition has n more acknowledged records.
func (tr *traffic) await(t *testing.T, n int) {
	t.Helper()
	tr.mu.Lock()
	want := make([]int, len(tr.published))
	for i, have := range tr.published {
		want[i] = have + n
	}
	tr.mu.Unlock()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	patience := time.After(2 * time.Minute)
	for {
		tr.mu.Lock()
		missing := 0
		for i, have := range tr.published {
			missing += max(want[i]-have, 0)
		}
		tr.mu.Unlock()
		if missing == 0 {
			return
		}
		select {
		case <-again.C:
		case <-patience:
			t.Fatalf("%d records are not acknowledged", missing)
		}
	}
}

// arrivals notes numbered records: repeats are allowed, but not records before earlier ones.
type arrivals struct {
	mu      sync.Mutex
	next    []int // by partition
	repeats int
}

func newArrivals(partitions int) *arrivals { return &arrivals{next: make([]int, partitions)} }

func (a *arrivals) add(messages []stream.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range messages {
		n := int(binary.BigEndian.Uint32(m.Value))
		switch next := &a.next[m.Partition]; {
		case n > *next:
			return fmt.Errorf("partition %d: record %d came, %d did not", m.Partition, n, *next)
		case n < *next:
			a.repeats++
		default:
			*next++
		}
	}
	return nil
}

// missing returns how many of the published records of all partitions have not come.
func (a *arrivals) missing(published []int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	missing := 0
	for i, n := range published {
		missing += max(n-a.next[i], 0)
	}
	return missing
}

// read fetches and commits until the reader is closed.
func (a *arrivals) read(ctx context.Context, r stream.Reader) error {
	for ctx.Err() == nil {
		messages, err := r.Fetch(ctx, 50)
		if err == nil {
			err = a.add(messages)
		}
		if err == nil {
			err = r.Commit(ctx, messages)
		}
		if errors.Is(err, stream.ErrClosed) {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitAll waits until all published records have come.
func (a *arrivals) awaitAll(t *testing.T, published []int, failed <-chan error) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	patience := time.After(2 * time.Minute)
	for a.missing(published) > 0 {
		select {
		case err := <-failed:
			if err != nil {
				t.Fatal(err)
			}
		case <-again.C:
		case <-patience:
			t.Fatalf("%d of %v acknowledged records have not come", a.missing(published), published)
		}
	}
}

// throughTrouble publishes and reads, with tails of tasks and two members for pages, while trouble
// happens. Afterwards every acknowledged record must have come, in order.
func throughTrouble(t *testing.T, trouble func(tasks, pages *traffic)) {
	log, other := openTwo(t, realBrokers(t), 6)
	failed := make(chan error, 16)
	var reading sync.WaitGroup
	read := func(a *arrivals, r stream.Reader, err error) {
		if err != nil {
			t.Fatal(err)
		}
		reading.Go(func() { failed <- a.read(t.Context(), r) })
	}
	tails, group := newArrivals(6), newArrivals(6)
	for partition := range 6 {
		r, err := log.Tail(stream.Tasks, partition)
		read(tails, r, err)
	}
	for _, member := range []*kafka.Log{log, other} {
		r, err := member.Consume(stream.Pages, "group")
		read(group, r, err)
	}
	tasks, pages := startTraffic(t, log, stream.Tasks), startTraffic(t, other, stream.Pages)
	tasks.await(t, 20)
	pages.await(t, 20)
	trouble(tasks, pages)
	published := tasks.end()
	tails.awaitAll(t, published, failed)
	t.Logf("tasks %v, %d repeats, %+v", published, tails.repeats, log.Counts()[stream.Tasks])
	published = pages.end()
	group.awaitAll(t, published, failed)
	t.Logf("pages %v, %d repeats, %+v", published, group.repeats, other.Counts()[stream.Pages])
	for _, l := range []*kafka.Log{log, other} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	reading.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
}

// openTwo opens two logs with the same topics, like two processes.
func openTwo(t *testing.T, brokers []string, partitions int) (one, two *kafka.Log) {
	t.Helper()
	prefix := newPrefix(t, brokers)
	return openPrefix(t, brokers, partitions, prefix), openPrefix(t, brokers, partitions, prefix)
}

// TestLagOfAWatchedGroup: a watched group counts, although its members are other processes.
func TestLagOfAWatchedGroup(t *testing.T) {
	reading, watching := openTwo(t, fakeBrokers(t), 2)
	reader, err := reading.Consume(stream.Pages, "g")
	if err != nil {
		t.Fatal(err)
	}
	watching.Watch(stream.Pages, "g")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lagIs := func(want int64) {
		t.Helper()
		for watching.Lag(stream.Pages) != want {
			select {
			case <-ctx.Done():
				t.Fatalf("the lag is %d, want %d", watching.Lag(stream.Pages), want)
			case <-time.After(50 * time.Millisecond): // the lag is measured once a second
			}
		}
	}
	if err := reading.Publish(ctx, stream.Pages, 1, []byte("a"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	lagIs(2)
	for read := 0; read < 2; {
		messages, err := reader.Fetch(ctx, 2)
		if err == nil {
			err = reader.Commit(ctx, messages)
		}
		if err != nil {
			t.Fatal(err)
		}
		read += len(messages)
	}
	lagIs(0)
}

// TestBrokerRestarts restarts each broker in turn while records flow.
func TestBrokerRestarts(t *testing.T) {
	brokers := realBrokers(t)
	servicesFolder(t)
	throughTrouble(t, func(tasks, pages *traffic) {
		for i := range brokers {
			name := fmt.Sprintf("kafka-%d", i+1)
			services(t, "down", name)
			awaitGone(t, brokers[i])
			services(t, "start", name)
			awaitInSync(t, brokers, tasks.log.(*kafka.Log))
			tasks.await(t, 10)
			pages.await(t, 10)
		}
	})
}

// TestBrokerLost kills one of three brokers while records flow, and carries on without it.
func TestBrokerLost(t *testing.T) {
	brokers := realBrokers(t)
	servicesFolder(t)
	if len(brokers) < 3 {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatalf("KAFKA_BROKERS names %d brokers, 3 are needed", len(brokers))
		}
		t.Skipf("KAFKA_BROKERS names %d brokers, 3 are needed", len(brokers))
	}
	throughTrouble(t, func(tasks, pages *traffic) {
		services(t, "down", "--kill", "kafka-2")
		tasks.await(t, 50)
		pages.await(t, 50)
		services(t, "start", "kafka-2")
		awaitInSync(t, brokers, tasks.log.(*kafka.Log))
		tasks.await(t, 20)
		pages.await(t, 20)
	})
}

// TestBrokerFrozen freezes a broker until it is replaced, then lets it continue.
func TestBrokerFrozen(t *testing.T) {
	brokers := realBrokers(t)
	servicesFolder(t)
	if len(brokers) < 3 {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatalf("KAFKA_BROKERS names %d brokers, 3 are needed", len(brokers))
		}
		t.Skipf("KAFKA_BROKERS names %d brokers, 3 are needed", len(brokers))
	}
	throughTrouble(t, func(tasks, pages *traffic) {
		services(t, "down", "--pause", "kafka-3")
		resumed := false
		resume := func() {
			if !resumed {
				services(t, "down", "--resume", "kafka-3")
			}
			resumed = true
		}
		defer resume()
		tasks.await(t, 20)
		pages.await(t, 20)
		resume()
		awaitInSync(t, brokers, tasks.log.(*kafka.Log))
	})
}

func TestTopicsMadeAnewOnFake(t *testing.T) { testTopicsMadeAnew(t, fakeBrokers(t)) }

func TestTopicsMadeAnew(t *testing.T) { testTopicsMadeAnew(t, realBrokers(t)) }

// testTopicsMadeAnew deletes the topics under readers that have read and committed. Every record
// acknowledged afterwards comes, even if it was written before the readers noticed.
func testTopicsMadeAnew(t *testing.T, brokers []string) {
	const before, after = 50, 80
	// Each of the three rounds may take two minutes on a busy machine.
	ctx, cancel := context.WithTimeout(t.Context(), 3*2*time.Minute)
	defer cancel()
	prefix := newPrefix(t, brokers)
	log := openPrefix(t, brokers, 2, prefix)
	readers := map[stream.Topic]stream.Reader{}
	var err error
	if readers[stream.Tasks], err = log.Tail(stream.Tasks, 1); err != nil {
		t.Fatal(err)
	}
	if readers[stream.Pages], err = log.Consume(stream.Pages, "group"); err != nil {
		t.Fatal(err)
	}
	first := 0
	for round, n := range []int{before, after, after} {
		if round > 0 {
			if err := deleteTopics(ctx, brokers, prefix); err != nil {
				t.Fatal(err)
			}
		}
		for topic, r := range readers {
			for i := range n {
				if err := log.Publish(ctx, topic, 1, numbered(first+i)); err != nil {
					t.Fatal(err)
				}
			}
			// A broker that has not heard of the deletion may have acknowledged the first records
			// for the old topic.
			const mayBeLost = 10
			for next := -1; next < first+n; {
				messages, err := r.Fetch(ctx, 100)
				if err != nil {
					t.Fatalf("round %d, %s: after record %d: %v", round, topic, next, err)
				}
				for _, m := range messages {
					got := int(binary.BigEndian.Uint32(m.Value))
					if next < 0 && round > 0 && got >= first && got <= first+mayBeLost {
						next = got
					}
					switch next = max(next, first); {
					case got == next:
						next++
					case got > next:
						t.Fatalf("round %d, %s: record %d came, %d did not", round, topic, got,
							next)
					}
				}
				if err := r.Commit(ctx, messages); err != nil {
					t.Fatal(err)
				}
			}
		}
		first += n
	}
	// Commits in the new topic hold.
	if err := readers[stream.Pages].Close(); err != nil {
		t.Fatal(err)
	}
	r, err := log.Consume(stream.Pages, "group")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Publish(ctx, stream.Pages, 1, []byte("last")); err != nil {
		t.Fatal(err)
	}
	messages, err := r.Fetch(ctx, 100)
	if err != nil || string(messages[0].Value) != "last" {
		t.Errorf("%d messages, error %v: what was committed came again", len(messages), err)
	}
}
