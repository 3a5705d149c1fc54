package bodies_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

var pack = bodies.Pack{Group: ids.ID{1}, Scraper: ids.ID{2}, Job: ids.ID{3}, ID: ids.ID{4},
	Days: 30}

// packs is a source with one pack.
type packs struct {
	key  blobstore.Key
	data []byte
	err  error
}

func (p *packs) Open(_ context.Context, key blobstore.Key, from, length int64) (io.ReadCloser,
	error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case key.String() != p.key.String():
		return nil, blobstore.ErrNotFound
	}
	end := min(from+length, int64(len(p.data)))
	return io.NopCloser(bytes.NewReader(p.data[min(from, end):end])), nil
}

// kept makes a pack with one entry after some bytes, and its place.
func kept(t *testing.T, body string) (bodies.Codec, *packs, bodies.Place) {
	t.Helper()
	codec := bodies.NewCodec()
	entry := bodies.Entry{Fetch: ids.ID{5}, Pages: []bodies.Page{
		codec.Pack("", "https://a.test/", "text/html", []byte(body)),
		codec.Pack("https://a.test/2", "https://b.test/", "text/plain", []byte("second"))}}
	encoded, err := entry.Encode()
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(body))
	at := bodies.Place{Customer: "alice", Group: pack.Group, Scraper: pack.Scraper, Job: pack.Job,
		Fetch: entry.Fetch, At: 1_000_000, Hash: hash[:],
		Kept: &model.KeptBody{Pack: pack.ID, Offset: 3, Length: uint32(len(encoded)), Days: 30}}
	return codec, &packs{key: pack.Key("alice"), data: append([]byte("xyz"), encoded...)}, at
}

func TestKeys(t *testing.T) {
	key := pack.Key("alice")
	if got, ok := bodies.ParsePack(key); !ok || got != pack {
		t.Errorf("%s is read as %+v, %v", key, got, ok)
	}
	if bodies.Lifetime(key) != 30*24*time.Hour {
		t.Errorf("lifetime %s", bodies.Lifetime(key))
	}
	for _, id := range []string{"", "a", strings.TrimSuffix(key.ID, "30") + "31",
		strings.TrimSuffix(key.ID, "30") + "0", strings.TrimSuffix(key.ID, "30") + "030",
		"x" + key.ID[1:], key.ID + "-1"} {
		other := blobstore.Key{Kind: blobstore.Bodies, Owner: "alice", ID: id}
		if got, ok := bodies.ParsePack(other); ok {
			t.Errorf("%q is a pack: %+v", id, got)
		}
		if bodies.Lifetime(other) != 0 {
			t.Errorf("%q has a lifetime of its own", id)
		}
	}
	if _, ok := bodies.ParsePack(blobstore.Key{Kind: blobstore.Exports, Owner: "alice",
		ID: key.ID}); ok {
		t.Error("an export is a pack")
	}
}

func TestRead(t *testing.T) {
	body := strings.Repeat("<p>ü</p>", 1000)
	codec, source, at := kept(t, body)
	entry, own, err := codec.Read(t.Context(), source, &at)
	if err != nil || string(own) != body || len(entry.Pages) != 2 ||
		entry.Pages[0].ContentType != "text/html" {
		t.Fatalf("%d bytes, %+v, %v", len(own), entry, err)
	}
	if second, err := codec.Body(entry.Pages[1]); err != nil || string(second) != "second" {
		t.Errorf("%q, %v", second, err)
	}
	if len(source.data) > len(body)/10 {
		t.Errorf("%d bytes take %d in a pack", len(body), len(source.data))
	}
	if want := time.UnixMicro(at.At).Add(30 * 24 * time.Hour); !at.Until().Equal(want) {
		t.Errorf("kept until %s", at.Until())
	}
	// Another run reads it through its own record.
	by := at
	copied := *at.Kept
	copied.From = at.From()
	by.Kept, by.Job, by.Group, by.Fetch = &copied, ids.ID{7}, ids.ID{8}, ids.ID{9}
	if _, own, err := codec.Read(t.Context(), source, &by); err != nil || string(own) != body {
		t.Errorf("by another run: %v", err)
	}
}

// TestStretches: nearby entries of a pack are read together, and each place gets its own.
func TestStretches(t *testing.T) {
	codec := bodies.NewCodec()
	source := &packs{key: pack.Key("alice")}
	var places []*bodies.Place
	for i, gap := range []int{0, 100, 0, 70 << 10, 0} {
		body := strings.Repeat("x", i+1)
		entry := bodies.Entry{Fetch: ids.ID{byte(i)}, Pages: []bodies.Page{
			codec.Pack("", "https://a.test/", "", []byte(body))}}
		encoded, err := entry.Encode()
		if err != nil {
			t.Fatal(err)
		}
		source.data = append(source.data, make([]byte, gap)...)
		hash := sha256.Sum256([]byte(body))
		places = append([]*bodies.Place{{Customer: "alice", Group: pack.Group,
			Scraper: pack.Scraper, Job: pack.Job, Fetch: entry.Fetch, Hash: hash[:],
			Kept: &model.KeptBody{Pack: pack.ID, Offset: uint32(len(source.data)),
				Length: uint32(len(encoded)), Days: 30}}}, places...)
		source.data = append(source.data, encoded...)
	}
	source.data = source.data[:len(source.data)-1]
	stretches := bodies.Stretches(places)
	var read []string
	reader := bodies.Reader{Codec: codec, Source: source}
	for i := range stretches {
		err := reader.Read(t.Context(), &stretches[i], func(at *bodies.Place, e *bodies.Entry,
			body []byte, gone error) error {
			if gone == nil && e.Fetch != at.Fetch {
				t.Errorf("%s has what is of %s", at.Fetch, e.Fetch)
			}
			if gone != nil && !errors.Is(gone, bodies.ErrGone) {
				t.Error(gone)
			}
			read = append(read, string(body))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"x", "xx", "xxx", "xxxx", ""}; len(stretches) != 2 ||
		!slices.Equal(read, want) {
		t.Errorf("%d stretches, %q", len(stretches), read)
	}
}

// TestGone: anything but the record's body is gone.
func TestGone(t *testing.T) {
	for name, change := range map[string]func(source *packs, at *bodies.Place){
		"never kept":    func(_ *packs, at *bodies.Place) { at.Kept = nil },
		"empty":         func(_ *packs, at *bodies.Place) { at.Kept.Length = 0 },
		"too long":      func(_ *packs, at *bodies.Place) { at.Kept.Length = bodies.MaxEntry + 1 },
		"removed":       func(s *packs, _ *bodies.Place) { s.key.ID = "other" },
		"cut off":       func(s *packs, _ *bodies.Place) { s.data = s.data[:len(s.data)-1] },
		"at its end":    func(_ *packs, at *bodies.Place) { at.Kept.Offset = 1 << 30 },
		"another place": func(_ *packs, at *bodies.Place) { at.Kept.Offset = 0 },
		"another fetch": func(_ *packs, at *bodies.Place) { at.Fetch = ids.ID{6} },
		"another hash":  func(_ *packs, at *bodies.Place) { at.Hash = []byte{1} },
		"another owner": func(_ *packs, at *bodies.Place) { at.Customer = "bob" },
		"another run":   func(_ *packs, at *bodies.Place) { at.Job = ids.ID{8} },
	} {
		codec, source, at := kept(t, "body")
		change(source, &at)
		if _, _, err := codec.Read(t.Context(), source, &at); !errors.Is(err, bodies.ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	codec, source, at := kept(t, "body")
	source.err = io.ErrClosedPipe
	if _, _, err := codec.Read(t.Context(), source, &at); errors.Is(err, bodies.ErrGone) ||
		!errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a store that is away: %v", err)
	}
}

// TestBombs: a body that understates its size takes no more memory than bodies may.
func TestBombs(t *testing.T) {
	codec := bodies.NewCodec()
	p := codec.Pack("", "", "", make([]byte, 1<<20))
	for _, bytes := range []uint32{0, 1<<20 - 1, 1<<20 + 1, 1 << 30} {
		if p.Bytes = bytes; len(p.Packed) > 1000 {
			t.Fatalf("zeros take %d bytes", len(p.Packed))
		}
		if _, err := codec.Body(p); !errors.Is(err, bodies.ErrGone) {
			t.Errorf("%d: %v", bytes, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	codec := bodies.NewCodec()
	f.Add([]byte{})
	f.Add([]byte{0xa2, 1, 0x4c})
	f.Fuzz(func(t *testing.T, data []byte) {
		at := bodies.Place{Customer: "alice", Kept: &model.KeptBody{Length: uint32(len(data)),
			Days: 1}}
		source := &packs{key: bodies.Pack{Days: 1}.Key("alice"), data: data}
		if _, _, err := codec.Read(t.Context(), source, &at); err == nil && len(data) == 0 {
			t.Error("nothing is a body")
		}
	})
}
