package fetcher

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// fakeBodies is a blob store in memory.
type fakeBodies struct {
	mu    sync.Mutex
	packs map[string][]byte
	puts  int
	wait  chan struct{} // a Put waits until it is closed; nil: no wait
	err   error         // of every Put
}

func newBodies() *fakeBodies { return &fakeBodies{packs: map[string][]byte{}} }

func (b *fakeBodies) Put(ctx context.Context, key blobstore.Key,
	from io.Reader) (blobstore.Written, error) {
	b.mu.Lock()
	b.puts++
	wait, err := b.wait, b.err
	b.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return blobstore.Written{}, ctx.Err()
		}
	}
	if err != nil {
		return blobstore.Written{}, err
	}
	data, err := io.ReadAll(from)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.packs[key.String()] = data
	return blobstore.Written{Bytes: int64(len(data))}, err
}

func (b *fakeBodies) List(context.Context, blobstore.Kind, string,
	[]byte) (blobstore.Page, error) {
	return blobstore.Page{}, nil
}

func (b *fakeBodies) Delete(context.Context, blobstore.Key) error { return nil }

func (b *fakeBodies) Open(_ context.Context, key blobstore.Key, from, length int64) (io.ReadCloser,
	error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, known := b.packs[key.String()]
	if !known {
		return nil, blobstore.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(data[from : from+length])), nil
}

func (b *fakeBodies) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

var groupID = ids.ID{11: 4}

// startKeeping runs a fetcher whose run keeps bodies for 3 days.
func startKeeping(t *testing.T, recipe model.Recipe) (*rig, *fakeBodies, func()) {
	t.Helper()
	store := newBodies()
	recipe.KeepDays = 3
	r, stop := start(t, 1, recipe, func(r *rig, config *Config) {
		r.control.jobs[jobID] = &client.Job{ID: jobID, State: model.Running, Group: groupID}
		config.Bodies = store
	})
	return r, store, stop
}

// read returns the kept bodies of a page.
func (b *fakeBodies) read(p *model.Page) (bodies.Entry, []byte, error) {
	return bodies.NewCodec().Read(context.Background(), b, &bodies.Place{Customer: "c",
		Group: groupID, Scraper: scraperID, Job: p.Job, Fetch: p.Fetch, Hash: p.BodyHash,
		Kept: p.Kept})
}

// Bodies of pages are in a pack, whatever the outcome, once their records are published.
func TestBodiesAreKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, store, stop := startKeeping(t, title)
		defer stop()
		r.web.page("http://b.test/", "<p>nothing")
		r.send(r.task(0, "http://a.test/"), r.task(1, "http://b.test/"),
			r.task(2, "http://a.test/2"))
		for _, p := range r.pages(3) {
			want := map[uint32]string{0: "<h1>http://a.test/</h1>", 1: "<p>nothing",
				2: "<h1>http://a.test/2</h1>"}[p.Unit.Seq]
			entry, body, err := store.read(p)
			if err != nil || string(body) != want || p.Kept.Days != 3 {
				t.Errorf("%+v: %q, %v", p.Unit, body, err)
				continue
			}
			if one := entry.Pages[0]; len(entry.Pages) != 1 || one.Asked != "" ||
				one.URL != p.URL || one.ContentType != "text/html" || one.At == 0 || one.At > p.At {
				t.Errorf("%+v: kept %+v", p.Unit, one)
			}
		}
		if c := r.f.Counts().Kept; c.Packs != 1 || c.Bodies != 3 || c.Lost != 0 || c.Bytes == 0 {
			t.Errorf("counts %+v", c)
		}
	})
}

// A record does not name a pack before the pack is durable.
func TestRecordsWaitForTheirPacks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, store, stop := startKeeping(t, title)
		defer stop()
		wait := make(chan struct{})
		store.change(func() { store.wait = wait })
		r.send(r.task(0, "http://a.test/"))
		pass(10 * time.Second)
		synctest.Wait()
		if c := r.f.Counts(); c.Open != 1 || c.HeldBytes == 0 {
			t.Errorf("while the pack is written: %+v", c)
		}
		close(wait)
		if _, _, err := store.read(r.pages(1)[0]); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if c := r.f.Counts(); c.Open != 0 || c.HeldBytes != 0 {
			t.Errorf("afterwards: %+v", c)
		}
	})
}

// Pages do not wait for a store that is down: their bodies are dropped, and for a while those of
// later pages, too.
func TestPagesGoOnWithoutAStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, store, stop := startKeeping(t, title)
		defer stop()
		store.change(func() { store.err = errors.New("away") })
		r.send(r.task(0, "http://a.test/"))
		p := r.pages(1)[0]
		if p.Kept != nil || p.Outcome != model.Delivered || len(p.Rows) != 1 ||
			p.BodyHash == nil {
			t.Errorf("page %+v", p)
		}
		store.change(func() { store.err = nil })
		r.send(r.task(1, "http://a.test/1"))
		if p := r.pages(1)[0]; p.Kept != nil || store.puts != 2 {
			t.Errorf("%d packs were tried; page %+v", store.puts, p)
		}
		pass(time.Minute)
		r.send(r.task(2, "http://a.test/2"))
		if _, _, err := store.read(r.pages(1)[0]); err != nil {
			t.Errorf("when the store is back: %v", err)
		}
		if c := r.f.Counts().Kept; c.Lost != 2 || c.Bodies != 1 {
			t.Errorf("counts %+v", c)
		}
	})
}

// Nothing is kept that no scraper asks for, or that a trial reads.
func TestBodiesAreNotKept(t *testing.T) {
	for name, change := range map[string]func(r *rig, recipe *model.Recipe){
		"off": func(_ *rig, recipe *model.Recipe) { recipe.KeepDays = 0 },
		"trial": func(r *rig, _ *model.Recipe) {
			r.control.jobs[jobID] = &client.Job{ID: jobID, State: model.Running,
				Source: model.SourceSample}
		},
	} {
		bubble(t, func(t *testing.T) {
			store := newBodies()
			recipe := title
			recipe.KeepDays = 3
			r, stop := start(t, 1, recipe, func(r *rig, config *Config) {
				change(r, &r.control.recipes[1].Recipe)
				config.Bodies = store
			})
			defer stop()
			r.send(r.task(0, "http://a.test/"))
			if p := r.pages(1)[0]; p.Kept != nil || store.puts != 0 || p.BodyHash == nil {
				t.Errorf("%s: page %+v", name, p)
			}
		})
	}
}

// All pages of a unit are kept with it, each with its requested address.
func TestBodiesOfAUnitOfSeveralPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, store, stop := startKeeping(t, contactsRecipe)
		defer stop()
		r.site("a.test")
		r.send(r.task(0, "http://a.test/"))
		p := r.pages(1)[0]
		entry, body, err := store.read(p)
		if err != nil || len(entry.Pages) != 3 || sha256.Sum256(body) != [32]byte(p.BodyHash) {
			t.Fatalf("%d pages, %v", len(entry.Pages), err)
		}
		for i, want := range []string{"", "http://a.test/contact", "http://a.test/imprint"} {
			if entry.Pages[i].Asked != want {
				t.Errorf("page %d was asked for as %q", i, entry.Pages[i].Asked)
			}
		}
	})
}

// Each page of a chain has its own bodies, and an unread page has none of another page's.
func TestBodiesOfAChain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		recipe := paged(model.Pagination{Type: model.URLPageParam, Param: "p"})
		recipe.Type = model.MultipleProducts
		r, store, stop := startKeeping(t, recipe)
		defer stop()
		r.web.page("http://a.test/", "<h1>one</h1>")
		r.web.page("http://a.test/?p=2", "<h1>two</h1>")
		r.web.fails("http://a.test/?p=3", -1,
			web.Failure{Code: fault.PageStatus, Status: 404})
		r.send(r.task(0, "http://a.test/"))
		pages := r.pages(3)
		for i, want := range []string{"<h1>one</h1>", "<h1>two</h1>"} {
			if _, body, err := store.read(pages[i]); err != nil || string(body) != want {
				t.Errorf("page %d: %q, %v", i, body, err)
			}
		}
		if pages[2].Kept != nil {
			t.Errorf("the missing page has %+v", pages[2].Kept)
		}
	})
}
