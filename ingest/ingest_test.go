package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	openJob   = id(1)
	endedJob  = id(2) // ended, still draining
	closedJob = id(3)
	hiddenJob = id(4) // open, but known only to the fresh view
	errTest   = errors.New("a failure of the test's")
)

func id(n byte) ids.ID { return ids.ID{11: n} }

type jobs map[ids.ID]*client.Job

func (j jobs) Job(id ids.ID) *client.Job { return j[id] }

type fakeControl struct{ view, fresh jobs }

func (c fakeControl) View() Jobs                          { return c.view }
func (c fakeControl) Fresh(context.Context) (Jobs, error) { return c.fresh, nil }

func testControl() fakeControl {
	const links = 1 << 20
	known := jobs{
		openJob: {ID: openJob, Links: links, Customer: "c", Group: id(20), Scraper: id(30),
			State: model.Running, Started: 1_700_000_000_000},
		endedJob: {ID: endedJob, Links: links, Scraper: id(30), State: model.Stopped},
		closedJob: {ID: closedJob, Links: links, Scraper: id(30), State: model.Completed,
			Closed: true},
	}
	fresh := jobs{hiddenJob: {ID: hiddenJob, Links: links, State: model.Running}}
	for id, job := range known {
		fresh[id] = job
	}
	return fakeControl{view: known, fresh: fresh}
}

type unit struct {
	job ids.ID
	model.Unit
}

// fakeStore keeps the first record of each unit; fail, when set, may refuse a transaction.
type fakeStore struct {
	rowstore.Pages
	fail func() error

	mu      sync.Mutex
	records map[unit]*model.Receipt
	pages   map[unit]rowstore.PageWrite
	batches int
}

func newStore() *fakeStore {
	return &fakeStore{fail: func() error { return nil }, records: map[unit]*model.Receipt{},
		pages: map[unit]rowstore.PageWrite{}}
}

func (s *fakeStore) PutPages(_ context.Context, pages []rowstore.PageWrite) ([]*model.Receipt,
	error) {
	if err := s.fail(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	receipts := make([]*model.Receipt, len(pages))
	for i, w := range pages {
		u := unit{w.Page.Job, w.Page.Unit}
		if s.records[u] == nil {
			s.pages[u] = w
			s.records[u] = &model.Receipt{Job: u.job, Unit: u.Unit, Outcome: w.Page.Outcome,
				Items: uint32(len(w.Page.Rows)), Last: w.Page.Last, Next: w.Page.Next}
		}
		receipts[i] = s.records[u]
	}
	return receipts, nil
}

func (s *fakeStore) has(u unit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[u] != nil
}

// flakyLog accepts only part of some publishes of receipts, and then fails.
type flakyLog struct {
	*stream.Memory
	fail func() bool
}

func (l flakyLog) Publish(ctx context.Context, topic stream.Topic, partition int,
	records ...[]byte) error {
	if topic == stream.Receipts && l.fail() {
		if err := l.Memory.Publish(ctx, topic, partition, records[:len(records)/2]...); err != nil {
			return err
		}
		return errTest
	}
	return l.Memory.Publish(ctx, topic, partition, records...)
}

// instant is a clock on which no pause takes time.
type instant struct{}

func (instant) Now() time.Time { return time.Unix(0, 0) }
func (instant) After(time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	ch <- time.Time{}
	return ch
}

func newLog(t interface{ Fatal(...any) }, partitions int) *stream.Memory {
	log, err := stream.NewMemory(stream.Config{Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func page(job ids.ID, seq uint32) model.Page {
	return model.Page{Job: job, Unit: model.Unit{Seq: seq}, Fetch: id(9), Outcome: model.Delivered,
		URL:  "http://a.test/",
		Last: true, Rows: [][]byte{[]byte(`{"title":"x"}`)}}
}

// start runs g. The returned stop ends it and returns what Run returned.
func start(g *Ingest) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	return func() error { cancel(); return <-done }
}

// readReceipts reads n records of `receipts` from all partitions.
func readReceipts(t interface{ Fatal(...any) }, r stream.Reader, n int) []stream.Message {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var got []stream.Message
	for len(got) < n {
		messages, err := r.Fetch(ctx, n-len(got))
		if err != nil {
			t.Fatal("receipts do not come: ", err)
		}
		got = append(got, messages...)
	}
	return got
}

func TestWhatBecomesOfAPage(t *testing.T) {
	log, store := newLog(t, 1), newStore()
	defer log.Close()
	billing, _ := log.Consume(stream.Receipts, "billing")
	cancelled := model.Page{Job: endedJob, Unit: model.Unit{Seq: 3}, Outcome: model.Cancelled,
		Last: true}
	broken := page(openJob, 7)
	broken.Rows = [][]byte{[]byte("no object")}
	records := [][]byte{
		stream.EncodePage(page(openJob, 1)),
		stream.EncodePage(page(closedJob, 2)),
		stream.EncodePage(cancelled),
		[]byte("rubbish"),
		stream.EncodePage(broken),
		stream.EncodePage(page(openJob, 1<<20)), // beyond the list
		stream.EncodePage(page(openJob, 1<<31)), // beyond what a row store takes
		stream.EncodePage(page(id(99), 4)),
		stream.EncodePage(page(hiddenJob, 5)),
		stream.EncodePage(page(endedJob, 6)),
		stream.EncodeMarker(model.Marker{Leader: 1, Number: 8,
			Open: []model.OpenTasks{{Job: openJob, Seqs: []uint32{4}}}}),
	}
	if err := log.Publish(context.Background(), stream.Pages, 0, records...); err != nil {
		t.Fatal(err)
	}
	committed := make(chan struct{}, len(records)) // at most one batch per record
	g := New(Config{Log: log, Store: store, Control: testControl(), Point: func(point string) {
		if point == "ingest.after_commit" {
			committed <- struct{}{}
		}
	}})
	stop := start(g)
	got := readReceipts(t, billing, 5)
	for log.Lag(stream.Pages) > 0 {
		<-committed
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	want := []unit{{openJob, model.Unit{Seq: 1}}, {endedJob, model.Unit{Seq: 3}},
		{hiddenJob, model.Unit{Seq: 5}},
		{endedJob, model.Unit{Seq: 6}}}
	for i, message := range got {
		receipt, marker, err := stream.DecodeReceipts(message.Value)
		switch {
		case err != nil:
			t.Fatal(err)
		case i == 4:
			if marker == nil || marker.Number != 8 || len(marker.Open) != 1 {
				t.Errorf("record 4 is %+v, want the marker as it was", marker)
			}
		case receipt == nil || (unit{receipt.Job, receipt.Unit}) != want[i]:
			t.Errorf("receipt %d is %+v, want one of %v", i, receipt, want[i])
		case (receipt.Outcome == model.Cancelled) != (i == 1):
			t.Errorf("receipt %d has outcome %d", i, receipt.Outcome)
		}
	}
	if store.has(want[1]) {
		t.Error("a cancelled page has a record")
	}
	if w := store.pages[want[0]]; w.Job.Started != 1_700_000_000_000_000 || w.Job.Customer != "c" ||
		w.Job.Group != id(20) {
		t.Errorf("stored under %+v", w.Job)
	}
	counts := g.Counts()
	if counts.Stored != 3 || counts.Dropped != 2 || counts.Undecodable != 4 || counts.Rows != 3 {
		t.Errorf("counts are %+v", counts)
	}
}

func TestBatchIsBounded(t *testing.T) {
	for name, config := range map[string]Config{
		"by count": {MaxPages: 10},
		"by bytes": {MaxBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			log, store := newLog(t, 1), newStore()
			defer log.Close()
			for seq := range uint32(300) {
				_ = log.Publish(context.Background(), stream.Pages, 0,
					stream.EncodePage(page(openJob, seq)))
			}
			config.Log, config.Store, config.Control = log, store, testControl()
			g := New(config)
			reader, _ := log.Consume(stream.Pages, Group)
			b, err := g.collect(context.Background(), reader)
			if err != nil {
				t.Fatal(err)
			}
			if most := min(fetchMost, g.config.MaxPages); len(b.messages) != most {
				t.Errorf("a batch of %d, want %d", len(b.messages), most)
			}
		})
	}
}

// Whatever fails, and wherever ingest is ended, each page is stored before its receipt, and each
// receipt is published in the end. Each marker follows the receipts of the pages before it.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const partitions = 3
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var mu sync.Mutex
		chance := func(n int) bool { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) == 0 }
		memory, store := newLog(t, partitions), newStore()
		defer memory.Close()
		log := flakyLog{memory, func() bool { return chance(5) }}
		store.fail = func() error {
			if chance(5) {
				return errTest
			}
			return nil
		}
		billing, _ := memory.Consume(stream.Receipts, "billing")
		before := make([]map[uint64][]uint32, partitions) // seqs before each marker
		seqs := make([][]uint32, partitions)
		total := rapid.IntRange(1, 60).Draw(t, "records")
		for n := range total {
			p := rng.IntN(partitions)
			record := stream.EncodePage(page(openJob, uint32(n)))
			if chance(4) {
				record = stream.EncodeMarker(model.Marker{Shard: uint16(p), Number: uint64(n)})
				if before[p] == nil {
					before[p] = map[uint64][]uint32{}
				}
				before[p][uint64(n)] = slices.Clone(seqs[p])
			} else {
				seqs[p] = append(seqs[p], uint32(n))
			}
			_ = memory.Publish(context.Background(), stream.Pages, p, record)
		}
		for memory.Lag(stream.Pages) > 0 || memory.Lag(stream.Receipts) == 0 {
			runUntilCrash(t, Config{Log: log, Store: store, Control: testControl(), MaxPages: 7,
				Linger: time.Microsecond,
				Clock:  instant{}}, chance, memory)
		}
		checkReceipts(t, readReceipts(t, billing, int(memory.Lag(stream.Receipts))), store, before,
			seqs)
	})
}

// runUntilCrash runs a member until a random crash point, or until all pages are committed.
func runUntilCrash(t *rapid.T, config Config, chance func(int) bool, log *stream.Memory) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config.Point = func(point string) {
		if chance(20) || point == "ingest.after_commit" && log.Lag(stream.Pages) == 0 {
			cancel()
		}
	}
	if err := New(config).Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func checkReceipts(t *rapid.T, got []stream.Message, store *fakeStore, before []map[uint64][]uint32,
	seqs [][]uint32) {
	seen := make([]map[uint32]bool, len(seqs))
	for p := range seen {
		seen[p] = map[uint32]bool{}
	}
	for _, message := range got {
		receipt, marker, err := stream.DecodeReceipts(message.Value)
		if err != nil {
			t.Fatal(err)
		}
		if receipt != nil {
			if !store.has(unit{receipt.Job, receipt.Unit}) {
				t.Fatalf("receipt of %v, which is not stored", receipt.Unit)
			}
			seen[message.Partition][receipt.Unit.Seq] = true
			continue
		}
		for _, seq := range before[message.Partition][marker.Number] {
			if !seen[message.Partition][seq] {
				t.Fatalf("marker %d overtook seq %d", marker.Number, seq)
			}
		}
		delete(before[message.Partition], marker.Number)
	}
	for p := range seqs {
		if len(before[p]) > 0 {
			t.Fatalf("markers %v of partition %d are lost", before[p], p)
		}
		for _, seq := range seqs[p] {
			if !seen[p][seq] {
				t.Fatalf("seq %d of partition %d has no receipt", seq, p)
			}
		}
	}
}

func TestClosedLogEndsRun(t *testing.T) {
	log := newLog(t, 1)
	g := New(Config{Log: log, Store: newStore(), Control: testControl()})
	done := make(chan error, 1)
	go func() { done <- g.Run(context.Background()) }()
	log.Close()
	if err := <-done; !errors.Is(err, stream.ErrClosed) {
		t.Errorf("Run returned %v, want ErrClosed", err)
	}
}
