package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/ids"
)

// TestViewsAreOfTheirMoment: whatever commands do, a view keeps its records, in order.
func TestViewsAreOfTheirMoment(t *testing.T) {
	type moment struct {
		view *View
		has  map[string]bool
	}
	names := rapid.StringOf(rapid.SampledFrom([]rune{0, 'a', 'b', 0xFF, 0x10FFFF}))
	rapid.Check(t, func(t *rapid.T) {
		s, has, moments := NewStore(), map[string]bool{}, []moment{}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := names.Draw(t, "name")
			fails := rapid.Bool().Draw(t, "fails")
			err := s.Update(uint64(step+1), 1, func(tx *Tx) error {
				tx.PutNode(&Node{Name: name})
				if rapid.IntRange(0, 3).Draw(t, "clear") == 0 {
					for _, node := range tx.Nodes() {
						tx.RemoveNode(node)
					}
				}
				if fails {
					return errRefused
				}
				has = map[string]bool{}
				for _, node := range tx.Nodes() {
					has[node.Name] = true
				}
				return nil
			})
			if (err != nil) != fails {
				t.Fatal(err)
			}
			moments = append(moments, moment{s.View(), has})
		}
		for _, m := range moments {
			want := slices.SortedFunc(maps.Keys(m.has), func(a, b string) int {
				return cmp.Compare(string(key(a)), string(key(b)))
			})
			var got []string
			for _, node := range m.view.Nodes() {
				got = append(got, node.Name)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("a view has %q, want %q", got, want)
			}
			back := nodesTable.backwards(m.view, "id_prefix")
			for _, name := range slices.Backward(want) {
				if next := back.next(); next == nil || next.(*Node).Name != name {
					t.Fatalf("backwards comes %v, want %q", next, name)
				}
			}
			if back.next() != nil {
				t.Fatal("backwards there is more")
			}
		}
	})
}

var errRefused = errRefusal{}

type errRefusal struct{}

func (errRefusal) Error() string { return "refused" }

// TestPrefixesBackwards compares a reverse read with the sorted order.
func TestPrefixesBackwards(t *testing.T) {
	texts := rapid.StringOf(rapid.SampledFrom([]rune{'a', 'b', 0xFF}))
	rapid.Check(t, func(t *rapid.T) {
		all, prefix := newTree(), texts.Draw(t, "prefix")
		for range rapid.IntRange(0, 80).Draw(t, "items") {
			text := texts.Draw(t, "text")
			all.ReplaceOrInsert(item{text, text})
		}
		read := func(reverse bool) (found []string) {
			scan(all, prefix, reverse, func(record any) bool {
				found = append(found, record.(string))
				return true
			})
			return found
		}
		up, down := read(false), read(true)
		slices.Reverse(down)
		if !slices.Equal(up, down) || slices.ContainsFunc(up,
			func(text string) bool { return !strings.HasPrefix(text, prefix) }) {
			t.Fatalf("forwards %q, backwards %q, prefix %q", up, down, prefix)
		}
	})
}

// TestWatchesEnd: a watcher fires at the record's next change, its creation and its removal, even
// if that came before the watch. It fires for nothing else.
func TestWatchesEnd(t *testing.T) {
	s := NewStore()
	put := func(id byte) {
		t.Helper()
		err := s.Update(1, 1, func(tx *Tx) error { tx.PutJob(&Job{ID: ids.ID{id}}); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	over := func(changed <-chan struct{}) bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	before := s.View()
	_, coming := before.WatchJob(ids.ID{1})
	put(1)
	if _, late := before.WatchJob(ids.ID{1}); !over(coming) || !over(late) {
		t.Error("a record has come, and its watcher is not told")
	}
	old := s.View()
	_, changed := old.WatchJob(ids.ID{1})
	put(2)
	if over(changed) {
		t.Error("another record has come")
	}
	put(1)
	if _, late := old.WatchJob(ids.ID{1}); !over(changed) || !over(late) {
		t.Error("a record has changed, and its watcher is not told")
	}
	_, gone := s.View().WatchJob(ids.ID{1})
	err := s.Update(1, 1, func(tx *Tx) error { tx.RemoveJob(tx.Job(ids.ID{1})); return nil })
	if err != nil || !over(gone) {
		t.Error("a record has gone, and its watcher is not told")
	}
	_, abandoned := s.View().WatchJob(ids.ID{2})
	s.Abandon()
	if !over(abandoned) {
		t.Error("the store is replaced, and a watcher is not told")
	}
}
