package state

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/btree"
)

// tree is one index of a table: its records in key order. A clone costs nothing. Each of the two
// then copies the nodes that it changes, so a view never changes.
type tree = btree.BTreeG[item]

type item struct {
	key    string
	record any
}

// treeDegree bounds a node to 31 items. A write copies one node per level.
const treeDegree = 16

func newTree() *tree {
	return btree.NewG(treeDegree, func(a, b item) bool { return a.key < b.key })
}

// content is the content of a table at one moment.
type content struct {
	kind *kind
	// trees are in the order of the table's indexes. A watched table has one more, with a watcher
	// for each record, by id.
	trees []*tree
	added *watcher // for records that do not exist yet
	// mine marks the trees that no view or reader shares, which may change in place. It is nil
	// outside of a command.
	mine []bool
}

func newContent(k *kind) *content {
	c := &content{kind: k}
	for range k.indexes {
		c.trees = append(c.trees, newTree())
	}
	if k.watched {
		c.trees, c.added = append(c.trees, newTree()), &watcher{}
	}
	return c
}

// read returns an index's tree for a read that goes on while the table changes.
func (c *content) read(index int) *tree {
	if c.mine != nil {
		c.mine[index] = false
	}
	return c.trees[index]
}

// write returns an index's tree, to be changed.
func (c *content) write(index int) *tree {
	if !c.mine[index] {
		c.trees[index], c.mine[index] = c.trees[index].Clone(), true
	}
	return c.trees[index]
}

// stored returns the record with an id.
func (c *content) stored(id string) (record any, found bool) {
	kept, found := c.trees[c.kind.id].Get(item{key: id})
	return kept.record, found
}

// put adds or replaces a record with the given keys. It returns the record replaced, or nil.
func (c *content) put(record any, keys []string) (replaced any) {
	old, found := c.stored(keys[c.kind.id])
	for i := range c.kind.indexes {
		if found {
			if was := c.kind.key(i, old); was != keys[i] && was != "" {
				c.write(i).Delete(item{key: was})
			}
		}
		if keys[i] != "" {
			c.write(i).ReplaceOrInsert(item{keys[i], record})
		}
	}
	return old
}

// remove removes the stored record with record's id and returns it; nil: there is none.
func (c *content) remove(record any) (removed any) {
	old, found := c.stored(c.kind.key(c.kind.id, record))
	if !found {
		return nil
	}
	for i := range c.kind.indexes {
		if was := c.kind.key(i, old); was != "" {
			c.write(i).Delete(item{key: was})
		}
	}
	return old
}

// scan visits the records whose keys begin with a prefix, in key order or in reverse, until visit
// returns false.
func scan(t *tree, prefix string, reverse bool, visit func(record any) bool) {
	if !reverse {
		t.AscendGreaterOrEqual(item{key: prefix}, func(i item) bool {
			return strings.HasPrefix(i.key, prefix) && visit(i.record)
		})
		return
	}
	down := func(i item) bool {
		// the first may be the key after the prefix's
		return !strings.HasPrefix(i.key, prefix) && i.key > prefix ||
			strings.HasPrefix(i.key, prefix) && visit(i.record)
	}
	if behind := behindPrefix(prefix); behind != "" {
		t.DescendLessOrEqual(item{key: behind}, down)
	} else {
		t.Descend(down)
	}
}

// behindPrefix returns the first text after all texts with a prefix; "": there is none.
func behindPrefix(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// cursorItems is how many items a cursor reads at a time.
const cursorItems = 16

// cursor reads the records whose keys begin with a prefix one by one, in reverse.
type cursor struct {
	from   *tree
	prefix string
	read   []item
	last   string // key of the last item read; "": none yet
	done   bool
}

// next returns the next record, nil after the last one.
func (c *cursor) next() any {
	if len(c.read) == 0 && !c.done {
		c.fill()
	}
	if len(c.read) == 0 {
		return nil
	}
	record := c.read[0].record
	c.read = c.read[1:]
	return record
}

func (c *cursor) fill() {
	c.done = true
	at := c.last
	if at == "" {
		at = behindPrefix(c.prefix)
	}
	take := func(i item) bool {
		switch {
		case c.last != "" && i.key == c.last, !strings.HasPrefix(i.key, c.prefix) &&
			i.key > c.prefix:
			return true // the last item read, or a key after the prefix's
		case !strings.HasPrefix(i.key, c.prefix):
			return false
		case len(c.read) == cursorItems:
			c.done = false
			return false
		}
		c.read = append(c.read, i)
		return true
	}
	if at == "" {
		c.from.Descend(take)
	} else {
		c.from.DescendLessOrEqual(item{key: at}, take)
	}
	if len(c.read) > 0 {
		c.last = c.read[len(c.read)-1].key
	}
}

// watcher signals one change. Its zero value has not fired.
type watcher struct {
	mu      sync.Mutex
	changed chan struct{} // nil while nobody watches
	over    bool
}

func (w *watcher) watch() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
		if w.over {
			close(w.changed)
		}
	}
	return w.changed
}

func (w *watcher) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && w.changed != nil {
		close(w.changed)
	}
	w.over = true
}

// rewatch replaces the watcher of a record, or removes it if the record is gone. It returns the old
// watcher, to be fired once the change is visible.
func (c *content) rewatch(id string, there bool) (told *watcher) {
	watchers := c.write(len(c.kind.indexes))
	told = c.watcherOf(id)
	if told == c.added && there {
		c.added = &watcher{}
	}
	if there {
		watchers.ReplaceOrInsert(item{id, &watcher{}})
	} else {
		watchers.Delete(item{key: id})
	}
	return told
}

// watcherOf returns the watcher of the record with an id.
func (c *content) watcherOf(id string) *watcher {
	if found, known := c.trees[len(c.kind.indexes)].Get(item{key: id}); known {
		return found.record.(*watcher)
	}
	return c.added
}

// contentOf returns a table's content from a list of all.
func contentOf(all []*content, k *kind) *content {
	for _, c := range all {
		if c.kind == k {
			return c
		}
	}
	panic(fmt.Sprintf("state: table %s is not listed", k.name)) // a programmer's slip
}
