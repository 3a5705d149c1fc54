package state

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// TestPackedNoticesReadLikeRecords compares packs with a plain list, over any order of changes.
func TestPackedNoticesReadLikeRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, index, now := NewStore(), uint64(0), int64(1)
		lists := map[string][]*Notice{"a": nil, "b": nil} // oldest first
		update := func(apply func(tx *Tx)) {
			index++
			if err := s.Update(index, now, func(tx *Tx) error {
				apply(tx)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			customer := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "customer")
			list := lists[customer]
			now += rapid.Int64Range(0, 3).Draw(t, "later")
			one := -1
			if len(list) > 0 {
				one = rapid.IntRange(0, len(list)-1).Draw(t, "which")
			}
			switch step := rapid.IntRange(0, 5).Draw(t, "step"); {
			case step == 0 && one >= 0:
				update(func(tx *Tx) { tx.RemoveNotice(list[one]) })
				list = slices.Delete(list, one, one+1)
			case step == 1 && one >= 0:
				n := *list[one]
				n.Read, n.At, n.Count = !n.Read, now, n.Count+1
				update(func(tx *Tx) { tx.PutNotice(&n) })
				list[one] = &n
			default:
				n := &Notice{ID: ids.ID{1, 10: byte(index >> 8), 11: byte(index)},
					Customer: customer, Event: model.RunFailed, At: now, Made: index,
					Message: strings.Repeat("x", rapid.IntRange(0, packBytes).Draw(t, "length"))}
				update(func(tx *Tx) { tx.PutNotice(n) })
				list = append(list, n)
			}
			lists[customer] = list
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				var err error
				if s, err = Restore(bytes.NewReader(snapshotOf(t, s))); err != nil {
					t.Fatal(err)
				}
			}
		}
		view, until := s.View(), rapid.Int64Range(0, now).Draw(t, "until")
		old, all := map[ids.ID]bool{}, 0
		for customer, list := range lists {
			var got, want []*Notice
			view.Notices(customer, func(n *Notice) bool { got = append(got, n); return true })
			for _, n := range slices.Backward(list) {
				want = append(want, n)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("the notices of %s: %s", customer, d)
			}
			var read *Notice
			for _, n := range list {
				if d := cmp.Diff(n, view.Notice(customer, n.ID)); d != "" {
					t.Fatalf("by id: %s", d)
				}
				if view.Notice("c", n.ID) != nil {
					t.Fatal("another customer has it")
				}
				if n.Read && read == nil {
					read = n
				}
				if n.At <= until {
					old[n.ID] = true
				}
				all++
			}
			if d := cmp.Diff(read, view.OldestRead(customer)); d != "" {
				t.Fatalf("the oldest read one: %s", d)
			}
		}
		most := rapid.IntRange(0, all).Draw(t, "most")
		listed := view.NoticesUntil(until, most)
		if len(listed) != min(len(old), most) {
			t.Fatalf("%d are old, want %d of %d", len(listed), most, len(old))
		}
		for _, n := range listed {
			if !old[n.ID] {
				t.Fatalf("of %d, until %d", n.At, until)
			}
			delete(old, n.ID) // each once
		}
	})
}

func snapshotOf(t *rapid.T, s *Store) []byte {
	var b bytes.Buffer
	if err := s.Snapshot().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCutNoticesAreRefused: a snapshot whose notices are cut short is damaged.
func TestCutNoticesAreRefused(t *testing.T) {
	packed := packNotice(&Notice{ID: ids.ID{1}, Event: model.RunFailed})
	for n := range 2 * len(packed) {
		s := NewStore()
		err := s.Update(1, 1, func(tx *Tx) error {
			tx.PutCluster(&Cluster{Version: SnapshotVersion})
			noticesTable.put(tx, &noticePack{Customer: "a",
				Packed: slices.Concat(packed, packed)[:n]})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Restore(bytes.NewReader(write(t, s)))
		if whole := n == len(packed); whole != (err == nil) {
			t.Errorf("%d bytes of a notice of %d: %v", n, len(packed), err)
		}
	}
}

// BenchmarkNotices adds a notice to an inbox that is full, and then lists its first page.
func BenchmarkNotices(b *testing.B) {
	const full, page = 1_000, 20
	s := NewStore()
	id := func(n int) ids.ID { return ids.ID{1, 9: byte(n >> 16), 10: byte(n >> 8), 11: byte(n)} }
	notice := func(n int) *Notice {
		return &Notice{ID: id(n), Customer: "customer", Event: model.RunCompleted, At: int64(n),
			Made: uint64(n), Subject: id(n), Scraper: id(n % 7), Name: fmt.Sprint("Shop ", n%7),
			Pages: 1, Items: 1, Micros: 150}
	}
	put := func(n int) {
		if err := s.Update(uint64(n+1), 1, func(tx *Tx) error {
			if n >= full {
				tx.RemoveNotice(&Notice{ID: id(n - full), Customer: "customer"})
			}
			if tx.Notice("customer", id(n)) == nil {
				tx.PutNotice(notice(n))
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	n := 0
	for ; n < full; n++ {
		put(n)
	}
	b.Run("add", func(b *testing.B) {
		perCommand(b, func() {
			put(n)
			n++
		})
	})
	b.Run("list", func(b *testing.B) {
		perCommand(b, func() {
			left := page
			s.View().Notices("customer", func(*Notice) bool { left--; return left > 0 })
		})
	})
}

// TestPacksAreThoseOfAnyVersion: each node packs notices itself. A member that is new and empty has
// to leave the bytes as they were, or nodes of two versions keep different states.
func TestPacksAreThoseOfAnyVersion(t *testing.T) {
	for _, kind := range []reflect.Type{reflect.TypeFor[Notice](), reflect.TypeFor[RunChanges]()} {
		for i := range kind.NumField() {
			field := kind.Field(i)
			if tag := field.Tag.Get("cbor"); !strings.Contains(tag, ",omit") &&
				field.Name != "Event" && field.Name != "Made" { // of the first version
				t.Errorf("%s.%s: %q is in each notice", kind, field.Name, tag)
			}
		}
	}
}
