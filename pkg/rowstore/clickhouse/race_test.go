package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// cluster is several stores of one database, like those of several processes.
type cluster struct {
	*testing.T
	db  string
	ids *ids.Sequence
	job rowstore.Job
}

func newCluster(t *testing.T) *cluster { return newClusterOf(t, database(t)) }

func newClusterOf(t *testing.T, db string) *cluster {
	source := &ids.Sequence{}
	return &cluster{t, db, source,
		rowstore.Job{ID: source.New(), Customer: "c", Group: source.New(), Scraper: source.New(),
			Started: 1_700_000_000_000_000}}
}

// open adds a store, which calls point at the named places.
func (c *cluster) open(point func(name string)) *clickhouse.Store {
	c.Helper()
	store := open(c, clickhouse.Config{Database: c.db, Node: "test", Point: point})
	c.Cleanup(func() { _ = store.Close() })
	return store
}

// page returns a fetch of a unit, whose rows name it.
func (c *cluster) page(seq uint32, fetch ids.ID, rows int) rowstore.PageWrite {
	p := &model.Page{Job: c.job.ID, Unit: model.Unit{Seq: seq}, Fetch: fetch,
		Outcome: model.Delivered, PriceRow: "tier:plain",
		Quantity: 1, Last: true, At: 1_700_000_000_000_000}
	for n := range rows {
		p.Rows = append(p.Rows, fmt.Appendf(nil, `{"seq":%d,"fetch":%q,"n":%d}`, seq, fetch, n))
	}
	return rowstore.PageWrite{Job: c.job, Page: p}
}

func (c *cluster) put(s *clickhouse.Store, pages ...rowstore.PageWrite) []*model.Receipt {
	receipts, err := s.PutPages(c.Context(), pages)
	if err != nil {
		c.Error(err)
	}
	return receipts
}

func (c *cluster) rows(s *clickhouse.Store) []string {
	c.Helper()
	rows := []string{}
	for after := int64(0); ; {
		docs, last, err := s.Scan(c.Context(),
			rowstore.ScanQuery{Scope: rowstore.Scope{Group: c.job.Group}, After: after,
				Upto: 1 << 62, Limit: 1000})
		if err != nil {
			c.Fatal(err)
		}
		for _, doc := range docs {
			rows = append(rows, string(doc))
		}
		if after = last; len(docs) < 1000 {
			return rows
		}
	}
}

func (c *cluster) equal(what string, want, got any) {
	c.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		c.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// gate stops a store at a place until the gate is opened.
type gate struct {
	name             string
	once             sync.Once
	reached, release chan struct{}
}

func newGate(name string) *gate {
	return &gate{name: name, reached: make(chan struct{}), release: make(chan struct{})}
}

func (g *gate) point(name string) {
	if name == g.name {
		g.once.Do(func() { close(g.reached); <-g.release })
	}
}

// TestPausedWriter: a process sleeps between its look-up and its insert. What another one stores
// meanwhile stands, whatever the fetch ids.
func TestPausedWriter(t *testing.T) {
	for _, late := range []byte{0, 2} {
		c := newCluster(t)
		g := newGate("rowstore.before_insert")
		paused, other := c.open(g.point), c.open(nil)
		var receipts []*model.Receipt
		var group sync.WaitGroup
		group.Go(func() {
			receipts = c.put(paused, c.page(1, ids.ID{late}, 3),
				c.page(2, ids.ID{late}, 1))
		})
		<-g.reached
		first := c.put(other, c.page(1, ids.ID{1}, 2))
		close(g.release)
		group.Wait()
		c.equal("receipt of the paused writer", first[0], receipts[0])
		c.equal("its other receipt", uint32(1), receipts[1].Items)
		rows := c.rows(other)
		c.equal("number of rows", 3, len(rows))
		if strings.Contains(strings.Join(rows[:2], ""), fmt.Sprintf("%q,\"n\":2", ids.ID{late})) {
			t.Errorf("rows of the later fetch: %s", rows)
		}
		if counts := paused.Counts(); counts.Raced != 1 {
			t.Errorf("counts %+v", counts)
		}
	}
}

// TestRepeatedInsert: two processes store one fetch at once, as after a redelivery. The server
// stores it once.
func TestRepeatedInsert(t *testing.T) {
	c := newCluster(t)
	g := newGate("rowstore.before_insert")
	paused, other := c.open(g.point), c.open(nil)
	pages := []rowstore.PageWrite{c.page(1, c.ids.New(), 3), c.page(2, c.ids.New(), 1)}
	var receipts []*model.Receipt
	var group sync.WaitGroup
	group.Go(func() { receipts = c.put(paused, pages...) })
	<-g.reached
	first := c.put(other, pages...)
	close(g.release)
	group.Wait()
	c.equal("receipts", first, receipts)
	c.equal("rows", 4, len(c.rows(other)))
	if counts := paused.Counts(); counts.Raced != 0 {
		t.Errorf("the repeat was stored, and removed: %+v", counts)
	}
}

// TestPausedDuplicate: two units have one address; that of a process that slept is a duplicate.
func TestPausedDuplicate(t *testing.T) {
	c := newCluster(t)
	g := newGate("rowstore.before_insert")
	paused, other := c.open(g.point), c.open(nil)
	one, two := c.page(1, c.ids.New(), 1), c.page(2, c.ids.New(), 1)
	one.Page.URLHash, two.Page.URLHash = 7, 7
	var receipts []*model.Receipt
	var group sync.WaitGroup
	group.Go(func() { receipts = c.put(paused, one) })
	<-g.reached
	c.put(other, two)
	close(g.release)
	group.Wait()
	c.equal("receipt", &model.Receipt{Job: c.job.ID, Unit: one.Page.Unit, Outcome: model.Duplicate,
		Last: true}, receipts[0])
	c.equal("again", receipts, c.put(other, one))
	c.equal("rows", 1, len(c.rows(other)))
}

// TestPausedChain: the chain of a process that slept turns out to end before pages that it stored.
// They give way, and the live chain gets their addresses.
func TestPausedChain(t *testing.T) {
	c := newCluster(t)
	g := newGate("rowstore.before_insert")
	paused, other := c.open(g.point), c.open(nil)
	page := func(seq, n uint32, hash uint64) rowstore.PageWrite {
		w := c.page(seq, c.ids.New(), 1)
		w.Page.Unit.Page, w.Page.URLHash, w.Page.Last = n, hash, false
		return w
	}
	var receipts []*model.Receipt
	var group sync.WaitGroup
	group.Go(func() { receipts = c.put(paused, page(1, 1, 30), page(1, 2, 40)) })
	<-g.reached
	c.put(other, page(2, 1, 30))
	close(g.release)
	group.Wait()
	c.equal("receipts", []*model.Receipt{{Job: c.job.ID, Unit: model.Unit{Seq: 1, Page: 1},
		Outcome: model.Duplicate,
		Last:    true}, nil}, receipts)
	c.equal("the chain that goes on", model.Delivered, c.put(other, page(2, 2, 40))[0].Outcome)
	c.equal("rows", 2, len(c.rows(other)))
}

// TestSealFence: a process that slept from its look-up until after the seal stores nothing, even if
// it dies right after its insert.
func TestSealFence(t *testing.T) {
	c := newCluster(t)
	g := newGate("rowstore.before_insert")
	paused, other := c.open(g.point), c.open(nil)
	c.put(other, c.page(0, c.ids.New(), 1))
	var receipts []*model.Receipt
	var group sync.WaitGroup
	group.Go(func() { receipts = c.put(paused, c.page(1, c.ids.New(), 2)) })
	<-g.reached
	if err := other.Seal(t.Context(), c.job.ID, nil); err != nil {
		t.Fatal(err)
	}
	close(g.release)
	group.Wait()
	c.equal("receipts", []*model.Receipt{nil}, receipts)
	c.equal("rows, also of before the process looked again", 1, len(c.rows(other)))
	c.equal("records ever stored", "1",
		query(t, "SELECT count() FROM "+c.db+".weeks WHERE kind = 0"))
}

// TestOldInsert: an insert whose look-up is older than any fence is kept out.
func TestOldInsert(t *testing.T) {
	c := newCluster(t)
	c.open(nil)
	for _, age := range []string{"30 MINUTE", "61 MINUTE"} {
		query(t, "INSERT INTO "+c.db+".intakeweekly (job, looked) SELECT toFixedString('job', 12), "+
			"now64(3) - INTERVAL "+age)
	}
	c.equal("rows", "1", query(t, "SELECT count() FROM "+c.db+".weeks"))
}

// TestPlacesAcross: places rise across processes, and the horizon of one holds for the others.
func TestPlacesAcross(t *testing.T) {
	c := newCluster(t)
	stores := []*clickhouse.Store{c.open(nil), c.open(nil), c.open(nil)}
	horizon := int64(0)
	for seq := range uint32(12) {
		s := stores[seq%3]
		c.put(s, c.page(seq, c.ids.New(), 2))
		next, err := stores[(seq+1)%3].Horizon(t.Context())
		if err != nil || next <= horizon {
			t.Fatalf("horizon %d after %d, %v", next, horizon, err)
		}
		docs, last, err := stores[(seq+2)%3].Scan(t.Context(),
			rowstore.ScanQuery{Scope: rowstore.Scope{Group: c.job.Group},
				After: horizon, Upto: next, Limit: 10})
		if err != nil || len(docs) != 2 || last <= horizon || last > next {
			t.Fatalf("%d rows between %d and %d, last %d, %v", len(docs), horizon, next, last, err)
		}
		horizon = next
		if seq == 6 { // removals, even of everything, free no places
			query(t, "ALTER TABLE "+c.db+".weeks DELETE WHERE 1 SETTINGS mutations_sync = 1")
			query(t, "OPTIMIZE TABLE "+c.db+".weeks FINAL")
		}
	}
}

// TestBeginning: each process caches where a group's rows begin, and misses nothing that another
// writes or removes. A store that was just opened has nothing cached.
func TestBeginning(t *testing.T) {
	c := newCluster(t)
	stores := []*clickhouse.Store{c.open(nil), c.open(nil)}
	later := c.job
	later.ID = c.ids.New()
	page := func(job rowstore.Job, seq uint32) {
		p := c.page(seq, c.ids.New(), 1)
		p.Job, p.Page.Job = job, job.ID
		p.Page.Rows[0] = fmt.Appendf(nil, `{"seq":%d}`, seq)
		c.put(stores[seq%2], p)
	}
	remove := func(s *clickhouse.Store, job rowstore.Job) {
		if err := s.DeleteJob(t.Context(), job.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, ``},
		{func() { page(c.job, 1) }, `{"seq":1}`},
		{func() { page(c.job, 2) }, `{"seq":1} {"seq":2}`},
		{func() { page(later, 3) }, `{"seq":1} {"seq":2} {"seq":3}`},
		{func() { remove(stores[1], c.job) }, `{"seq":3}`},
		{func() { page(c.job, 4) }, `{"seq":3} {"seq":4}`},
		{func() { remove(stores[0], later); remove(stores[0], c.job) }, ``},
		{func() { page(later, 5) }, `{"seq":5}`},
	} {
		step.do()
		for _, s := range append(stores, c.open(nil)) {
			for range 2 {
				c.equal("rows", step.want, strings.Join(c.rows(s), " "))
			}
		}
	}
}

// TestMigrateAtOnce: any number of processes may start at once on a new server.
func TestMigrateAtOnce(t *testing.T) {
	c := newCluster(t)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() { c.open(nil) })
	}
	group.Wait()
	c.equal("migrations", "3", query(t, "SELECT count() FROM "+c.db+".migrations"))
	c.equal("locks", "0", query(t,
		"SELECT count() FROM system.tables WHERE database = '"+c.db+"' AND name = 'migrating'"))
	query(t, "INSERT INTO "+c.db+".migrations (version) VALUES (9999)")
	if _, err := clickhouse.Open(t.Context(),
		clickhouse.Config{URL: server(t), Database: c.db}); err == nil ||
		!strings.Contains(err.Error(), "schema version 9999") {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	if _, err := clickhouse.Open(t.Context(),
		clickhouse.Config{URL: "http://127.0.0.1:1/db"}); err == nil {
		t.Error("opened nothing")
	}
	for _, url := range []string{"", "clickhouse://127.0.0.1:1/db", "http://127.0.0.1:1/a`b"} {
		if _, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url}); err == nil {
			t.Errorf("opened %q", url)
		}
	}
}

// TestDropUnderIntake: a list that is dropped during its intake does not come back.
func TestDropUnderIntake(t *testing.T) {
	c := newCluster(t)
	store := c.open(nil)
	list := c.ids.New()
	w, err := store.CreateList(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(t.Context(), "x", "x"); err != nil {
		t.Fatal(err)
	}
	if err := c.open(nil).DropList(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(t.Context()); err == nil {
		t.Fatal("finished a dropped list")
	}
	if err := w.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	lists, err := store.AllLists(t.Context())
	if err != nil || len(lists) != 0 {
		t.Fatalf("lists %v, %v", lists, err)
	}
}

// outcome is what writers were told and readers find: for every unit one fetch, whole, and always
// the same receipt.
type outcome struct {
	sync.Mutex
	receipts map[uint32][]*model.Receipt
}

func (o *outcome) note(receipts []*model.Receipt) {
	o.Lock()
	defer o.Unlock()
	for _, r := range receipts {
		if r != nil {
			o.receipts[r.Unit.Seq] = append(o.receipts[r.Unit.Seq], r)
		}
	}
}

// check seals the job and compares all rows with the receipts.
func (o *outcome) check(c *cluster, store *clickhouse.Store, units int) {
	c.Helper()
	if err := store.Seal(c.Context(), c.job.ID, nil); err != nil {
		c.Fatal(err)
	}
	fetches, rows := map[uint32]string{}, map[uint32]uint32{}
	seen := map[string]bool{}
	for _, row := range c.rows(store) {
		var doc struct {
			Seq   uint32
			Fetch string
		}
		if err := json.Unmarshal([]byte(row), &doc); err != nil {
			c.Fatal(err)
		}
		if seen[row] || fetches[doc.Seq] != "" && fetches[doc.Seq] != doc.Fetch {
			c.Errorf("row %s is there twice, or of a second fetch", row)
		}
		seen[row], fetches[doc.Seq] = true, doc.Fetch
		rows[doc.Seq]++
	}
	stored := 0
	err := store.EachRecord(c.Context(), c.job.ID, func(r rowstore.Record) error {
		stored++
		if r.Items != rows[r.Unit.Seq] || r.Items > 0 && fetches[r.Unit.Seq] != r.Fetch.String() {
			c.Errorf("record %+v, but %d rows of fetch %s", r, rows[r.Unit.Seq],
				fetches[r.Unit.Seq])
		}
		for _, receipt := range o.receipts[r.Unit.Seq] {
			if receipt.Items != r.Items || receipt.Outcome != r.Outcome {
				c.Errorf("receipt %+v, but record %+v", receipt, r)
			}
		}
		delete(rows, r.Unit.Seq)
		return nil
	})
	if err != nil || stored != units || len(rows) != 0 {
		c.Errorf("%d records of %d units, rows without one: %v, %v", stored, units, rows, err)
	}
	sum, err := store.Recount(c.Context(), c.job.ID)
	if err != nil || sum.Delivered != uint64(units) || sum.Items != uint64(len(seen)) {
		c.Errorf("recount %+v of %d units with %d rows, %v", sum, units, len(seen), err)
	}
}

// TestWritersAgree: writers that store the same units at the same time get the same receipts.
func TestWritersAgree(t *testing.T) {
	c := newCluster(t)
	const writers, units, size = 4, 60, 6
	told := outcome{receipts: map[uint32][]*model.Receipt{}}
	plans := make([][]rowstore.PageWrite, writers)
	for w := range plans {
		for seq := range uint32(units) {
			plans[w] = append(plans[w], c.page(seq, c.ids.New(), 1+w))
		}
		if w%2 == 1 {
			slices.Reverse(plans[w])
		}
	}
	var group sync.WaitGroup
	for _, plan := range plans {
		store := c.open(nil)
		group.Go(func() {
			for batch := range slices.Chunk(plan, size) {
				told.note(c.put(store, batch...))
			}
		})
	}
	group.Wait()
	told.check(c, c.open(nil), units)
}
