package fsm

import (
	"bytes"
	"flag"
	"fmt"
	"runtime"
	"testing"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// The most that a scraper may take besides its recipe, in bytes.
const (
	mostHeap     = 2 << 10
	mostSnapshot = 1 << 10
)

// definer makes scrapers by encoded commands, as the log does, so that no two share memory.
type definer struct {
	*testing.T
	m      *FSM
	index  uint64
	number uint64
}

func newDefiner(t *testing.T, version uint32) *definer {
	return &definer{T: t, m: founded(t, version), index: 1}
}

// id returns a new id; ids are scattered.
func (d *definer) id() (id ids.ID) {
	d.number++
	copy(id[:], fmt.Sprintf("%012x", d.number*0x9E3779B97F4A7C15>>16))
	return id
}

func (d *definer) apply(payload command.Payload) Result {
	d.Helper()
	data, err := d.m.Encode(d.id(), int64(d.index), payload, nil)
	if err != nil {
		d.Fatal(err)
	}
	d.index++
	return d.m.Apply(d.index, data)
}

func (d *definer) must(payload command.Payload) any {
	d.Helper()
	result := d.apply(payload)
	if result.Err != nil {
		d.Fatal(result.Err)
	}
	return result.Value
}

// owner makes the nth customer with one group.
func (d *definer) owner(n int) (customer string, group ids.ID) {
	customer, group = fmt.Sprintf("auth0|%024d", n), d.id()
	d.must(command.OpenCustomerPayload{Customer: customer, Entry: d.id()})
	d.must(command.PutGroupPayload{Create: true, ID: group, Customer: customer, Name: "Products",
		DataTable: "products", StartType: "MANUAL"})
	return customer, group
}

// recipe returns one of many kinds: a product page with eight fields and a rule.
func recipe(kind int) model.Scraper {
	spec := model.Scraper{Type: model.SingleProduct, Config: &model.ScraperConfig{
		Politeness: &model.Politeness{RequestsPerSecond: 2}}}
	for n := range 8 {
		spec.ItemsConfig = append(spec.ItemsConfig, model.Field{
			Name:     fmt.Sprintf("field_%d", n),
			Selector: fmt.Sprintf("main .product-%d > div.detail:nth-child(%d) span", kind, n)})
	}
	spec.PostProcessRules = []model.PostProcessRule{{Kind: "REGEX_CLEAN", SourceField: "field_1",
		OutputField: "clean", Params: map[string]any{"pattern": "[^0-9]", "replacement": ""}}}
	return spec
}

func (d *definer) scraper(customer string, group ids.ID, n, kind int) {
	spec := recipe(kind)
	spec.Name = fmt.Sprintf("Shop number %d", n)
	spec.SourceConfig.URL = fmt.Sprintf("https://www.shop-%d.example/products/list?page=%d", n, n)
	d.must(command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer, Group: group,
		Spec: spec})
}

// forget drops stored results, which would expire after minutes.
func (d *definer) forget() {
	err := d.m.Store().Update(d.index, 0, func(tx *state.Tx) error {
		tx.ResultsByExpiry(func(r *state.StoredResult) bool { tx.RemoveResult(r); return true })
		return nil
	})
	if err != nil {
		d.Fatal(err)
	}
}

func (d *definer) snapshot() []byte {
	var b bytes.Buffer
	if err := d.m.Snapshot().Write(&b); err != nil {
		d.Fatal(err)
	}
	return b.Bytes()
}

// heap measures the memory of a state restored from a snapshot.
func (d *definer) heap(snapshot []byte) int {
	before := liveHeap()
	s, err := state.Restore(bytes.NewReader(snapshot))
	if err != nil {
		d.Fatal(err)
	}
	after := liveHeap()
	runtime.KeepAlive(s)
	runtime.KeepAlive(snapshot)
	runtime.KeepAlive(d)
	return after - before
}

// liveHeap returns the memory in use.
func liveHeap() int {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC() // pools release their memory at the second one
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}

// manyScrapers is as many as a commit check can wait for. Nightly tests use ten times as many.
var manyScrapers = flag.Int("scrapers", 10_000, "scrapers whose memory is measured")

func TestScrapersAreSmallBesideTheirRecipes(t *testing.T) {
	scrapers, owners, kinds := *manyScrapers, *manyScrapers/10, 200
	d := newDefiner(t, command.Newest)
	type owner struct {
		customer string
		group    ids.ID
	}
	var all []owner
	for n := range owners {
		customer, group := d.owner(n)
		all = append(all, owner{customer, group})
	}
	d.forget()
	empty := d.snapshot()
	before := d.heap(empty)
	for n := range scrapers {
		o := all[n%owners]
		d.scraper(o.customer, o.group, n, n%kinds)
	}
	d.forget()
	full := d.snapshot()
	after := d.heap(full)
	heap := (after - before) / scrapers
	stored := (len(full) - len(empty)) / scrapers
	one := recipe(0)
	encoded, err := codec.New().Marshal(one.Recipe())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d scrapers, %d recipes of %d bytes: %d bytes of heap each, %d of snapshot", scrapers,
		kinds, len(encoded), heap, stored)
	if heap > mostHeap || stored > mostSnapshot {
		t.Errorf("a scraper costs %d bytes of heap and %d of snapshot, more than %d and %d", heap,
			stored, mostHeap, mostSnapshot)
	}
	if scrapers == 10_000 {
		documented(t, "With 200 recipes of 575 bytes it takes %d bytes,", stored)
	}
}
