package intake

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

func beginList(t *testing.T, gate *Gate) *List {
	t.Helper()
	list, err := gate.BeginList(t.Context(), t.TempDir(), "list")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestHashCollisions: with any hash, a list is exact: addresses with equal hashes are compared.
func TestHashCollisions(t *testing.T) {
	for name, hash := range map[string]func(string, uint64) uint64{
		"all equal":        func(string, uint64) uint64 { return 1<<63 + 7 },
		"zero":             func(string, uint64) uint64 { return 0 },
		"length":           func(s string, _ uint64) uint64 { return uint64(len(s)) << 40 },
		"unstored bits":    func(s string, _ uint64) uint64 { return uint64(s[len(s)-1]) },
		"all ones":         func(string, uint64) uint64 { return 1<<64 - 1 },
		"the one it is on": xxh3.HashStringSeed,
	} {
		t.Run(name, func(t *testing.T) {
			list := beginList(t, NewGate())
			defer func() { _ = list.End() }()
			list.hash = hash
			want := map[string]bool{}
			random := rand.New(rand.NewPCG(1, 1))
			for range 1000 {
				url := fmt.Sprintf("https://a.test/%s%d", strings.Repeat("x", random.IntN(5)),
					random.IntN(60))
				added, err := list.Add(url, url)
				if err != nil {
					t.Fatal(err)
				}
				if added == want[url] {
					t.Fatalf("%s: added %v", url, added)
				}
				want[url] = true
			}
			if int(list.Count()) != len(want) {
				t.Fatalf("%d of %d links", list.Count(), len(want))
			}
		})
	}
}

// TestOneHugeListAtATime: a huge list waits for the other or its context; small lists go on.
func TestOneHugeListAtATime(t *testing.T) {
	gate := NewGate()
	grow := func(list *List, from, to int) error {
		for i := from; i < to; i++ {
			url := fmt.Sprint("https://a.test/", i)
			if err := list.Wait(t.Context()); err != nil {
				return err
			}
			if list.Full() {
				list.Written()
			}
			if _, err := list.Add(url, url); err != nil {
				return err
			}
		}
		return nil
	}
	first, second := beginList(t, gate), beginList(t, gate)
	if err := errors.Join(grow(first, 0, hugeFrom+1), grow(second, 0, hugeFrom)); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("a second huge list did not wait: %v", err)
	}
	small := beginList(t, gate)
	if err := grow(small, 0, 10); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- grow(second, hugeFrom, hugeFrom+10) }()
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second.End(), second.End(), small.End()); err != nil {
		t.Fatal(err)
	}
	if len(gate.huge) != 0 || len(gate.all) != 0 {
		t.Fatalf("permits are still held: %d huge, %d in all", len(gate.huge), len(gate.all))
	}
	if _, err := small.Add("x", "x"); !errors.Is(err, ErrOver) {
		t.Errorf("added after the end: %v", err)
	}
}

func TestLinkBounds(t *testing.T) {
	list := beginList(t, NewGate())
	defer func() { _ = list.End() }()
	long := strings.Repeat("x", MaxLinkBytes)
	if added, err := list.Add(long, long); err != nil || !added {
		t.Fatal(added, err)
	}
	if _, err := list.Add(long+"x", "x"); err == nil {
		t.Fatal("a link beyond the bound was taken")
	}
}

// TestChunks: chunks come out full, in order, each once; only the last may be shorter.
func TestChunks(t *testing.T) {
	list := beginList(t, NewGate())
	defer func() { _ = list.End() }()
	var got []string
	next := 0
	take := func() {
		first, chunks := list.Packed()
		if first != next {
			t.Fatalf("chunk %d follows chunk %d", first, next-1)
		}
		for _, data := range chunks {
			links, _, err := Unpack(data)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, links...)
		}
		next += len(chunks)
		list.Written()
	}
	var want []string
	for i := range 10*ChunkLinks + 7 {
		want = append(want, fmt.Sprint("https://a.test/", i))
		if list.Full() {
			take()
		}
		if _, err := list.Add(want[i], want[i]); err != nil {
			t.Fatal(err)
		}
	}
	list.Pack()
	list.Pack()
	if take(); !slices.Equal(got, want) {
		t.Fatalf("%d links came out, %d went in", len(got), len(want))
	}
}

// TestSeenMemory: the table of seen addresses is a set, within its memory at every size.
func TestSeenMemory(t *testing.T) {
	var table seen
	never := func(uint32) (bool, error) { return false, errors.New("compared") }
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300_000 {
		// No two of these 2^47 distinguishable hashes are equal: this seed is known to have none.
		if added, err := table.add(random.Uint64(), uint32(n), never); err != nil || !added {
			t.Fatal(added, err)
		}
		if n > 10_000 && table.bytes() > 23*n {
			t.Fatalf("%d bytes for %d addresses", table.bytes(), n)
		}
	}
}

func TestSeenIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table seen
		hashes := []uint64{}
		for range rapid.IntRange(0, 200).Draw(t, "n") {
			hash := rapid.SampledFrom([]uint64{0, 1, 1 << 20, 1 << 58, 1<<58 | 1<<17,
				1<<64 - 1}).Draw(t, "high") +
				uint64(rapid.IntRange(0, 40).Draw(t, "low"))<<17
			added, err := table.add(hash, uint32(len(hashes)),
				func(seq uint32) (bool, error) { return hashes[seq] == hash, nil })
			if err != nil || added == slices.Contains(hashes, hash) {
				t.Fatalf("hash %x: added %v, %v", hash, added, err)
			}
			if added {
				hashes = append(hashes, hash)
			}
		}
	})
}

func TestSpool(t *testing.T) {
	s, err := newSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	random := rand.New(rand.NewPCG(5, 6))
	var all []string
	for i := range 5000 {
		all = append(all, fmt.Sprint(strings.Repeat("ä", random.IntN(60)), i))
		if err := s.add(all[i]); err != nil {
			t.Fatal(err)
		}
		seq := random.IntN(len(all))
		for _, probe := range []int{seq, i, random.IntN(len(all))} {
			same, err := s.is(uint32(probe), all[seq])
			if err != nil || same != (probe == seq) {
				t.Fatalf("address %d under %d: %v, %v", seq, probe, same, err)
			}
		}
	}
}

// TestChunkBound: a chunk that claims to be too large is refused before memory is allocated for it.
func TestChunkBound(t *testing.T) {
	if _, _, err := Unpack(binary.AppendUvarint(nil, maxChunkBytes+1)); !errors.Is(err,
		errMalformedChunk) {
		t.Fatalf("got %v", err)
	}
}

func FuzzUnpackChunk(f *testing.F) {
	f.Add(packChunk(appendLink(appendLink(nil, "https://a.test/"), "")))
	f.Add([]byte{})
	f.Add(packChunk([]byte{200}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		links, _, err := Unpack(data)
		if err != nil {
			return
		}
		var chunk []byte
		for _, link := range links {
			chunk = appendLink(chunk, link)
		}
		again, _, err := Unpack(packChunk(chunk))
		if err != nil || !slices.Equal(links, again) {
			t.Fatalf("%q became %q, %v", links, again, err)
		}
	})
}
