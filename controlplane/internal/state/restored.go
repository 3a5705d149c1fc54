package state

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/pkg/model"
)

// restoredAtOnce is how many records of a snapshot a goroutine decodes at a time.
const restoredAtOnce = 512

// decoded is a batch of a snapshot's records, with what does not depend on other batches.
type decoded struct {
	items [][]item // by index
	sum   uint64
	err   error
}

// restoreTable reads a table's section after its head. Decoding takes most of the time, so it uses
// every core. The trees are built in key order once all keys are known.
func (t *Tx) restoreTable(dec *cbor.Decoder, k *kind, count int) error {
	some := make(chan chan decoded, runtime.GOMAXPROCS(0))
	var given atomic.Bool // stop reading
	go func() {
		defer close(some)
		for left := count; left > 0 && !given.Load(); left -= restoredAtOnce {
			raw, err := readRaw(dec, min(left, restoredAtOnce))
			done := make(chan decoded, 1)
			some <- done
			if err != nil {
				done <- decoded{err: err}
				return
			}
			go func() { done <- k.decode(raw) }()
		}
	}()
	var failed error
	items := make([][]item, len(k.indexes))
	for done := range some {
		part := <-done
		if failed != nil {
			continue // drain, so that all goroutines end
		}
		if failed = part.err; failed != nil {
			given.Store(true)
			continue
		}
		for i := range items {
			items[i] = append(items[i], part.items[i]...)
		}
		t.sum += part.sum
	}
	if failed == nil {
		failed = t.own(k).fill(items)
	}
	if failed != nil {
		return fmt.Errorf("state: snapshot of table %s: %w", k.name, failed)
	}
	return nil
}

// fill puts records into an empty table; items are given by index. Inserting in key order finds the
// nodes in the processor's cache. Scattered keys would each walk through memory.
func (c *content) fill(items [][]item) error {
	var building sync.WaitGroup
	twice := make([]bool, len(items))
	for i := range items {
		tree := c.write(i)
		building.Go(func() {
			slices.SortFunc(items[i], func(a, b item) int { return strings.Compare(a.key, b.key) })
			for _, it := range items[i] {
				_, replaced := tree.ReplaceOrInsert(it)
				twice[i] = twice[i] || replaced
			}
		})
	}
	building.Wait()
	if i := slices.Index(twice, true); i >= 0 {
		return fmt.Errorf("two records have the same key in index %s", c.kind.indexes[i].name)
	}
	if c.kind.watched {
		watchers := c.write(len(c.kind.indexes))
		for _, it := range items[c.kind.id] {
			watchers.ReplaceOrInsert(item{it.key, &watcher{}})
		}
	}
	return nil
}

// readRaw reads count records, undecoded.
func readRaw(dec *cbor.Decoder, count int) ([]cbor.RawMessage, error) {
	raw := make([]cbor.RawMessage, count)
	for i := range raw {
		if err := dec.Decode(&raw[i]); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

func (k *kind) decode(raw []cbor.RawMessage) decoded {
	d := decoded{items: make([][]item, len(k.indexes))}
	summer := newSummer()
	_, mode := summer.codec.Modes()
	for _, data := range raw {
		record := k.empty()
		if d.err = mode.Unmarshal(data, record); d.err != nil {
			return d
		}
		for i, key := range k.keys(record) {
			if key != "" {
				d.items[i] = append(d.items[i], item{key, record})
			}
		}
		d.sum += summer.record(k, record)
	}
	return d
}

// join makes a snapshot's records share their recipes and customers' names. Nobody else uses the
// records yet.
func (t *Tx) join() error {
	recipes, names := map[Hash]*model.Recipe{}, map[string]string{}
	contentsTable.each(&t.View, false, func(c *Content) bool {
		recipes[c.Hash] = &c.Recipe
		return true
	}, "id_prefix")
	customersTable.each(&t.View, false, func(c *Customer) bool {
		names[c.Ref] = c.Ref
		return true
	}, "id_prefix")
	share := func(name *string) {
		if shared, known := names[*name]; known {
			*name = shared
		}
	}
	var err error
	recipesTable.each(&t.View, false, func(r *Recipe) bool {
		if !r.Content.zero() {
			if recipes[r.Content] == nil {
				err = fmt.Errorf("state: snapshot lacks a recipe of scraper %s", r.Scraper)
				return false
			}
			r.Recipe = *recipes[r.Content]
		}
		return true
	}, "id_prefix")
	scrapersTable.each(&t.View, false, func(s *Scraper) bool {
		if !s.Content.zero() {
			if recipes[s.Content] == nil {
				err = fmt.Errorf("state: snapshot lacks a recipe of scraper %s", s.ID)
				return false
			}
			s.share(recipes[s.Content])
		}
		share(&s.Customer)
		return true
	}, "id_prefix")
	jobsTable.each(&t.View, false, func(j *Job) bool { share(&j.Customer); return true },
		"id_prefix")
	entriesTable.each(&t.View, false, func(e *Entry) bool { share(&e.Customer); return true },
		"id_prefix")
	walletsTable.each(&t.View, false, func(w *Wallet) bool { share(&w.Customer); return true },
		"id_prefix")
	groupsTable.each(&t.View, false, func(g *Group) bool { share(&g.Customer); return true },
		"id_prefix")
	noticesTable.each(&t.View, false, func(p *noticePack) bool {
		if !p.whole() {
			err = fmt.Errorf("state: snapshot has notices of %q that are cut short", p.Customer)
		}
		share(&p.Customer)
		return err == nil
	}, "id_prefix")
	return err
}
