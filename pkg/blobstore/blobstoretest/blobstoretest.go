// Package blobstoretest holds the suite that every blobstore.Store passes, wherever its blobs are.
package blobstoretest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/blobstore"
)

// small is a kind whose limit a test can reach.
var small = blobstore.Kind{Name: "uploads", MaxBytes: 1000}

// Run runs the suite. open makes an empty store and closes it when the test has ended.
func Run(t *testing.T, open func(t *testing.T) *blobstore.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *blobstore.Store)
	}{
		{"PutIsRead", testPutIsRead},
		{"LargeBlobs", testLargeBlobs},
		{"Ranges", testRanges},
		{"Bounds", testBounds},
		{"BrokenWrites", testBrokenWrites},
		{"NothingIsThere", testNothingIsThere},
		{"BadKeys", testBadKeys},
		{"Lists", testLists},
		{"ListsGoOn", testListsGoOn},
		{"Sweep", testSweep},
		{"SweepUnsure", testSweepUnsure},
		{"SweepLifetimes", testSweepLifetimes},
		{"SweepPages", testSweepPages},
		{"Concurrently", testConcurrently},
		{"Model", testModel},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func key(owner, id string) blobstore.Key {
	return blobstore.Key{Kind: small, Owner: owner, ID: id}
}

// tester is a test, or one of the many that rapid creates.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

func put(t tester, s *blobstore.Store, k blobstore.Key, content []byte) {
	t.Helper()
	written, err := s.Put(t.Context(), k, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	want := blobstore.Written{Bytes: int64(len(content)), Digest: sha256.Sum256(content)}
	if written != want {
		t.Fatalf("%s: written %+v, want %+v", k, written, want)
	}
}

func read(t tester, s *blobstore.Store, k blobstore.Key, from, length int64) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), k, from, length)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

func testPutIsRead(t *testing.T, s *blobstore.Store) {
	k := key("alice", "a")
	for _, content := range []string{"", "one", strings.Repeat("x", 1000), "shorter"} {
		put(t, s, k, []byte(content))
		if got := read(t, s, k, 0, -1); string(got) != content {
			t.Errorf("%q is read, want %q", got, content)
		}
		info, err := s.Stat(t.Context(), k)
		if err != nil || info.Key != k || info.Bytes != int64(len(content)) ||
			info.Written.IsZero() {
			t.Errorf("%+v, %v", info, err)
		}
	}
}

// testLargeBlobs: a blob uploaded in parts is one blob.
func testLargeBlobs(t *testing.T, s *blobstore.Store) {
	k := blobstore.Key{Kind: blobstore.Bodies, Owner: "alice", ID: "pack"}
	content := make([]byte, 20<<20)
	fill := rand.NewChaCha8([32]byte{1})
	_, _ = fill.Read(content) // never fails
	put(t, s, k, content)
	if got := read(t, s, k, 0, -1); !bytes.Equal(got, content) {
		t.Error("other bytes are read than were written")
	}
	const at, length = 9<<20 - 5, 10
	if got := read(t, s, k, at, length); !bytes.Equal(got, content[at:at+length]) {
		t.Error("a range holds other bytes than were written")
	}
}

func testRanges(t *testing.T, s *blobstore.Store) {
	k := key("alice", "a")
	put(t, s, k, []byte("0123456789"))
	for _, c := range []struct {
		from, length int64
		want         string
	}{{0, 3, "012"}, {3, 3, "345"}, {8, 5, "89"}, {9, 1, "9"}, {4, -1, "456789"}, {2, 0, ""}} {
		if got := read(t, s, k, c.from, c.length); string(got) != c.want {
			t.Errorf("%d bytes from %d: %q, want %q", c.length, c.from, got, c.want)
		}
	}
	if _, err := s.Open(t.Context(), k, -1, 1); err == nil {
		t.Error("a byte before the first is read")
	}
}

func testBounds(t *testing.T, s *blobstore.Store) {
	k := key("alice", "a")
	whole := bytes.Repeat([]byte("x"), int(small.MaxBytes))
	put(t, s, k, whole)
	longer := bytes.NewReader(append(whole, 'y'))
	if _, err := s.Put(t.Context(), k, longer); !errors.Is(err, blobstore.ErrTooLarge) {
		t.Errorf("%v, want %v", err, blobstore.ErrTooLarge)
	}
	if got := read(t, s, k, 0, -1); !bytes.Equal(got, whole) {
		t.Error("the blob that was there is not there any more")
	}
}

// testBrokenWrites: nothing is visible of an incompletely written blob.
func testBrokenWrites(t *testing.T, s *blobstore.Store) {
	broken := errors.New("the connection broke")
	for _, written := range []int{0, 10} {
		k := key("alice", fmt.Sprint("broken", written))
		from := io.MultiReader(strings.NewReader(strings.Repeat("x", written)),
			iotest.ErrReader(broken))
		if _, err := s.Put(t.Context(), k, from); !errors.Is(err, broken) {
			t.Errorf("%v, want %v", err, broken)
		}
		absent(t, s, k)
	}
	ctx, cancel := context.WithCancel(t.Context())
	k := key("alice", "cancelled")
	_, err := s.Put(ctx, k, readerOf(func([]byte) (int, error) { cancel(); return 0, io.EOF }))
	if err == nil {
		t.Error("a write whose context has ended is answered")
	}
	absent(t, s, k)
	if listed := all(t, s, small, ""); len(listed) != 0 {
		t.Errorf("%v are listed", listed)
	}
}

type readerOf func(p []byte) (int, error)

func (r readerOf) Read(p []byte) (int, error) { return r(p) }

func absent(t *testing.T, s *blobstore.Store, k blobstore.Key) {
	t.Helper()
	if _, err := s.Stat(t.Context(), k); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("Stat %s: %v, want %v", k, err, blobstore.ErrNotFound)
	}
	if _, err := s.Open(t.Context(), k, 0, -1); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("Open %s: %v, want %v", k, err, blobstore.ErrNotFound)
	}
}

func testNothingIsThere(t *testing.T, s *blobstore.Store) {
	k := key("alice", "a")
	absent(t, s, k)
	for range 2 {
		if err := s.Delete(t.Context(), k); err != nil {
			t.Error(err)
		}
		put(t, s, k, []byte("one"))
		if err := s.Delete(t.Context(), k); err != nil {
			t.Error(err)
		}
		absent(t, s, k)
	}
	for _, kind := range blobstore.Kinds() {
		if listed := all(t, s, kind, ""); len(listed) != 0 {
			t.Errorf("%v are listed", listed)
		}
	}
}

func testBadKeys(t *testing.T, s *blobstore.Store) {
	long := strings.Repeat("x", 129)
	for _, k := range []blobstore.Key{{}, key("", "a"), key("alice", ""), key(long, "a"),
		key("alice", long), key("alice", "a/b"), key("alice", ".."), key("alice", ".a"),
		key("alice", "a b"), key("alice", "a.tmp"), key("alice", "a.attrs"), key("alice", "ä")} {
		_, opened := s.Open(t.Context(), k, 0, -1)
		_, written := s.Put(t.Context(), k, strings.NewReader("x"))
		_, looked := s.Stat(t.Context(), k)
		for _, err := range []error{opened, written, looked, s.Delete(t.Context(), k)} {
			if !errors.Is(err, blobstore.ErrBadKey) {
				t.Errorf("%q: %v, want %v", k, err, blobstore.ErrBadKey)
			}
		}
	}
}

// all lists all blobs.
func all(t tester, s *blobstore.Store, kind blobstore.Kind,
	owner string) (found []blobstore.Info) {
	t.Helper()
	var next []byte
	for {
		page, err := s.List(t.Context(), kind, owner, next)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, page.Blobs...)
		if next = page.Next; next == nil {
			return found
		}
	}
}

// testLists: kinds and owners are separate, whatever the owners' names.
func testLists(t *testing.T, s *blobstore.Store) {
	owners := []string{"a", "a-b", "a.b", "a/b", "a~b", "A b", "é", "..", "a2"}
	for i, owner := range owners {
		put(t, s, key(owner, "one"), make([]byte, i))
		put(t, s, key(owner, "two"), make([]byte, i))
	}
	other := blobstore.Key{Kind: blobstore.Bodies, Owner: "a", ID: "one"}
	put(t, s, other, nil)
	for i, owner := range owners {
		listed := all(t, s, small, owner)
		if len(listed) != 2 || listed[0].Key != key(owner, "one") ||
			listed[1].Key != key(owner, "two") || listed[0].Bytes != int64(i) {
			t.Errorf("%q has %+v", owner, listed)
		}
	}
	if listed := all(t, s, small, ""); len(listed) != 2*len(owners) {
		t.Errorf("%d are listed, want %d: %+v", len(listed), 2*len(owners), listed)
	}
	if listed := all(t, s, blobstore.Bodies, ""); len(listed) != 1 || listed[0].Key != other {
		t.Errorf("%+v are listed", listed)
	}
}

// testListsGoOn: all pages together hold each blob once, in order.
func testListsGoOn(t *testing.T, s *blobstore.Store) {
	const first, second = 700, 650 // together more than one page
	var puts sync.WaitGroup
	for at := range 10 {
		puts.Go(func() {
			for i := at; i < first; i += 10 {
				put(t, s, key("a-b", fmt.Sprintf("%04d", i)), nil)
			}
			for i := at; i < second; i += 10 {
				put(t, s, key("a", fmt.Sprintf("%04d", i)), nil)
			}
		})
	}
	puts.Wait()
	page, err := s.List(t.Context(), small, "", nil)
	if err != nil || len(page.Blobs) > 1000 || page.Next == nil {
		t.Errorf("a page has %d blobs: %v", len(page.Blobs), err)
	}
	next := map[string]int{}
	for _, info := range all(t, s, small, "") {
		if want := fmt.Sprintf("%04d", next[info.Key.Owner]); info.Key.ID != want {
			t.Fatalf("%s stands where %s has to", info.Key, want)
		}
		next[info.Key.Owner]++
	}
	if want := map[string]int{"a-b": first, "a": second}; !maps.Equal(next, want) {
		t.Errorf("%v are listed, want %v", next, want)
	}
}

// testConcurrently: during concurrent writes, removals and lists, each read returns a whole blob.
func testConcurrently(t *testing.T, s *blobstore.Store) {
	var work sync.WaitGroup
	for writer := range 4 {
		work.Go(func() {
			for i := range 25 {
				k := key("alice", fmt.Sprint(i%3))
				content := bytes.Repeat([]byte{byte('a' + writer)}, 100+writer)
				if _, err := s.Put(t.Context(), k, bytes.NewReader(content)); err != nil {
					t.Error(err)
				}
				if i%5 == 4 {
					if err := s.Delete(t.Context(), k); err != nil {
						t.Error(err)
					}
				}
				if _, err := s.List(t.Context(), small, "", nil); err != nil {
					t.Error(err)
				}
				wholeOrNone(t, s, k)
			}
		})
	}
	work.Wait()
}

func wholeOrNone(t *testing.T, s *blobstore.Store, k blobstore.Key) {
	t.Helper()
	r, err := s.Open(t.Context(), k, 0, -1)
	if errors.Is(err, blobstore.ErrNotFound) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	content, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Error(err)
		return
	}
	if len(content) == 0 || len(content) != 100+int(content[0]-'a') ||
		!bytes.Equal(content, bytes.Repeat(content[:1], len(content))) {
		t.Errorf("half a blob is read: %q", content)
	}
}

// testModel: any sequence of calls acts like a map.
func testModel(t *testing.T, s *blobstore.Store) {
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		owner := fmt.Sprint("round-", round)
		held := map[string][]byte{}
		id := rapid.SampledFrom([]string{"a", "b.c", "d-e"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				i := id.Draw(t, "id")
				held[i] = rapid.SliceOfN(rapid.Byte(), 0, 1000).Draw(t, "content")
				put(t, s, key(owner, i), held[i])
			},
			"delete": func(t *rapid.T) {
				i := id.Draw(t, "id")
				delete(held, i)
				if err := s.Delete(t.Context(), key(owner, i)); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				var names []string
				for _, info := range all(t, s, small, owner) {
					names = append(names, info.Key.ID)
					if got := read(t, s, info.Key, 0, -1); !bytes.Equal(got, held[info.Key.ID]) {
						t.Fatalf("%s holds %q, want %q", info.Key, got, held[info.Key.ID])
					}
				}
				if want := slices.Sorted(maps.Keys(held)); !slices.Equal(names, want) {
					t.Fatalf("%v are listed, want %v", names, want)
				}
			},
		})
	})
}
