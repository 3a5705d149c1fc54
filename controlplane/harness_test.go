package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
	"shoal.dev/shoal/pkg/stream"
)

// lists is a row store with only link lists and page records.
type lists struct {
	rowstoretest.Archive
	mu      sync.Mutex
	links   map[ids.ID][]rowstore.Link
	records map[ids.ID]map[model.Unit]model.Receipt
	sealed  map[ids.ID]bool
	emptied map[ids.ID]bool // runs without rows
	sites   map[ids.ID]bool // versions of sites
	stated  map[ids.ID]bool // sites with link states
	atOnce  int             // the most links per read; 0: as many as asked for
	free    atomic.Uint64   // free on its disk; 0: unknown
	// sealing is called before a run is sealed; nil: no call
	sealing func(ctx context.Context, job ids.ID)
}

func newLists() *lists {
	return &lists{links: map[ids.ID][]rowstore.Link{},
		records: map[ids.ID]map[model.Unit]model.Receipt{},
		sealed:  map[ids.ID]bool{}, emptied: map[ids.ID]bool{},
		sites: map[ids.ID]bool{}, stated: map[ids.ID]bool{}}
}

func (l *lists) add(list ids.ID, urls ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, url := range urls {
		l.links[list] = append(l.links[list], rowstore.Link{Seq: uint32(i), URL: url})
	}
}

func (l *lists) Links(_ context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link,
	error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	links, known := l.links[list]
	if !known {
		return nil, rowstore.ErrListUnknown
	}
	if l.atOnce > 0 {
		most = min(most, l.atOnce)
	}
	from = min(from, uint32(len(links)))
	return slices.Clone(links[from:min(len(links), int(from)+most)]), nil
}

func (l *lists) LinksAt(_ context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.links[list]; !known {
		return nil, rowstore.ErrListUnknown
	}
	var found []rowstore.Link
	for _, seq := range seqs {
		found = append(found, l.links[list][seq])
	}
	return found, nil
}

func (l *lists) Advance(context.Context) error { return nil }

func (l *lists) Free(context.Context) (bytes uint64, known bool, err error) {
	bytes = l.free.Load()
	return bytes, bytes > 0, nil
}

func (l *lists) AllLists(context.Context) ([]rowstore.ListInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []rowstore.ListInfo
	for id, links := range l.links {
		all = append(all, rowstore.ListInfo{ID: id, Count: uint32(len(links)), Finished: true})
	}
	return all, nil
}

func (l *lists) AllSites(context.Context) (all []rowstore.ListInfo, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.sites {
		all = append(all, rowstore.ListInfo{ID: id, Finished: true})
	}
	return all, nil
}

func (l *lists) DropSite(_ context.Context, version ids.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sites, version)
	return nil
}

func (l *lists) StatedSites(context.Context) (all []ids.ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.stated {
		all = append(all, id)
	}
	return all, nil
}

func (l *lists) DropLinkStates(_ context.Context, site ids.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stated, site)
	return nil
}

func (l *lists) DropList(_ context.Context, list ids.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, list)
	return nil
}

// JobsSince ignores the time and visits all jobs.
func (l *lists) JobsSince(_ context.Context, _ int64, visit func(rowstore.Job) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for job := range l.records {
		if err := visit(rowstore.Job{ID: job, Customer: "ann"}); err != nil {
			return err
		}
	}
	return nil
}

func (l *lists) DeleteJob(_ context.Context, job ids.ID, records bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if records {
		delete(l.records, job)
	}
	l.emptied[job] = true
	return nil
}

func (l *lists) has(list ids.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.links[list]
	return ok
}

func (l *lists) PutPages(_ context.Context, pages []rowstore.PageWrite) ([]*model.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var receipts []*model.Receipt
	for _, write := range pages {
		p := write.Page
		if l.records[p.Job] == nil {
			l.records[p.Job] = map[model.Unit]model.Receipt{}
		}
		r, stands := l.records[p.Job][p.Unit]
		if !stands {
			r = model.Receipt{Job: p.Job, Unit: p.Unit, Outcome: p.Outcome, PriceRow: p.PriceRow,
				Quantity: p.Quantity,
				Items:    uint32(len(p.Rows)), Last: p.Last, Next: p.Next}
			l.records[p.Job][p.Unit] = r
		}
		receipts = append(receipts, &r)
	}
	return receipts, nil
}

func (l *lists) Records(_ context.Context, job ids.ID, units []model.Unit) ([]model.Receipt,
	error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []model.Receipt
	for _, unit := range units {
		if r, ok := l.records[job][unit]; ok {
			found = append(found, r)
		}
	}
	return found, nil
}

func (l *lists) EachRecord(_ context.Context, job ids.ID, visit func(rowstore.Record) error) error {
	l.mu.Lock()
	records := slices.Collect(maps.Values(l.records[job]))
	l.mu.Unlock()
	slices.SortFunc(records, func(a, b model.Receipt) int {
		return cmp.Or(cmp.Compare(a.Unit.Seq, b.Unit.Seq), cmp.Compare(a.Unit.Page, b.Unit.Page))
	})
	for _, r := range records {
		record := rowstore.Record{Unit: r.Unit, Outcome: r.Outcome, PriceRow: r.PriceRow,
			Quantity: r.Quantity, Items: r.Items, Last: r.Last}
		if err := visit(record); err != nil {
			return err
		}
	}
	return nil
}

func (l *lists) Scan(_ context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error) {
	return nil, q.Upto, nil
}

// Holding returns the runs that have pages and were not emptied.
func (l *lists) Holding(_ context.Context, scope rowstore.Scope, _ int) (held []ids.ID, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, job := range scope.Jobs {
		if len(l.records[job]) > 0 && !l.emptied[job] {
			held = append(held, job)
		}
	}
	return held, nil
}

func (l *lists) Seal(ctx context.Context, job ids.ID, _ func(model.Unit, bool) bool) error {
	if l.sealing != nil {
		l.sealing(ctx, job)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed[job] = true
	return nil
}

func (l *lists) Sealed(_ context.Context, job ids.ID) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sealed[job], nil
}

const testShards = 4

func newLog(t testing.TB) stream.Log {
	t.Helper()
	log, err := stream.NewMemory(stream.Config{Partitions: testShards})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func testConfig(t testing.TB, dir string) Config {
	t.Helper()
	config := Defaults()
	config.Dir, config.Node, config.Roles, config.Capacity = dir, "one",
		[]string{"controlplane", "fetcher"}, 1
	config.Shards, config.Log, config.Store = testShards, newLog(t), newLists()
	config.HostRate, config.MaxHostRate = 0, 0
	config.HostOf, config.ShardOf = address.AuthorityOf,
		func(host string) int { return len(host) % testShards }
	config.Logger = slog.New(slog.DiscardHandler)
	config.Boot = config.IDs.New()
	return config
}

// running is a server under test.
type running struct {
	*Server
	client.Client
	stop func()
}

// start runs a server until stop or the test's end.
func start(t testing.TB, config Config) *running {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return &running{Server: s, Client: s.Client(), stop: stop}
}

// serve starts a server and waits until it is ready.
func serve(t testing.TB, config Config) *running {
	t.Helper()
	r := start(t, config)
	select {
	case <-r.Ready():
	case <-patient(t).Done():
		t.Fatal("the server does not become ready")
	}
	return r
}

// patient returns a context that ends a hanging test.
func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
