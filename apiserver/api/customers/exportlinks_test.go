package customers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// meeting is a writer that calls meet at the first line that contains text.
type meeting struct {
	text string
	once *sync.Once
	meet func() error
}

func (m meeting) Write(line []byte) (n int, err error) {
	if bytes.Contains(line, []byte(m.text)) {
		m.once.Do(func() { err = m.meet() })
	}
	return len(line), err
}

// linked is a customer with a site and a run, each with more links than are read at once.
type linked struct {
	store   rowstore.Store
	view    *client.View
	version ids.ID
	job     client.Job
}

func newLinked(t *testing.T) *linked {
	t.Helper()
	at := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, source := clienttest.New(t, at), ids.Random{Now: at.Now}
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &linked{store: store, version: source.New(),
		job: client.Job{ID: source.New(), List: source.New(), Links: exportedAtOnce + 1}}
	list, err := l.store.CreateList(t.Context(), l.job.List)
	if err != nil {
		t.Fatal(err)
	}
	links := make([]rowstore.SiteLink, exportedAtOnce+1)
	for n := range links {
		links[n] = rowstore.SiteLink{Seq: uint32(n), URL: fmt.Sprint("https://shop.test/", n)}
		_, added := list.Add(t.Context(), links[n].URL, links[n].URL)
		err = errors.Join(err, added)
	}
	_, finished := list.Finish(t.Context())
	err = errors.Join(err, finished, l.store.PutSiteLinks(t.Context(), l.version, links),
		l.store.FinishSite(t.Context(), l.version, uint32(len(links))))
	if err != nil {
		t.Fatal(err)
	}
	group, scraper := source.New(), source.New()
	c.Must(t, client.OpenCustomer{Customer: "alice", Entry: source.New()})
	c.Must(t, client.PutGroup{Create: true, ID: group, Customer: "alice", Name: "g"})
	c.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "alice", Group: group,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct}})
	c.Must(t, client.PutSite{ID: source.New(), Customer: "alice", Scraper: scraper,
		Version: l.version, Links: uint32(len(links))})
	l.view = c.View()
	return l
}

// export makes an export that calls meet at the first line that contains text.
func (l *linked) export(text string, meet func() error) *exporter {
	return &exporter{Resource: Resource{Store: l.store}, view: l.view, customer: "alice",
		lines: json.NewEncoder(meeting{text, &sync.Once{}, meet})}
}

// A slow reader of an export does not block other reads.
func TestSlowExportsHoldNoReads(t *testing.T) {
	l := newLinked(t)
	const slow = 20 // more than there are connections
	met, goOn := make(chan struct{}, slow), make(chan struct{})
	var exports sync.WaitGroup
	for range slow {
		exports.Go(func() {
			e := l.export(`"siteLink"`, func() error {
				met <- struct{}{}
				<-goOn
				return nil
			})
			if err := e.sites(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range slow {
		select {
		case <-met:
		case <-ctx.Done():
		}
	}
	if _, err := l.store.Count(ctx, rowstore.Scope{Group: ids.ID{1}}, nil); err != nil {
		t.Errorf("a read beside slow exports: %v", err)
	}
	close(goOn)
	exports.Wait()
}

// If links are removed while they are exported, the export breaks off. Links that were removed
// before are missing.
func TestExportHasAllLinksOrNone(t *testing.T) {
	for kind, of := range map[string]struct {
		drop  func(l *linked) error
		write func(e *exporter, l *linked) error
	}{
		"siteLink": {func(l *linked) error { return l.store.DropSite(t.Context(), l.version) },
			func(e *exporter, _ *linked) error { return e.sites(t.Context()) }},
		"link": {func(l *linked) error { return l.store.DropList(t.Context(), l.job.List) },
			func(e *exporter, l *linked) error { return e.links(t.Context(), &l.job) }},
	} {
		t.Run(kind, func(t *testing.T) {
			l, dropped := newLinked(t), false
			e := l.export(fmt.Sprintf(`{"kind":%q`, kind), func() error {
				dropped = true
				return of.drop(l)
			})
			if err := of.write(e, l); !errors.Is(err, rowstore.ErrListUnknown) {
				t.Errorf("links that go meanwhile: %v", err)
			}
			if !dropped {
				t.Error("no link was written")
			}
			gone := l.export(fmt.Sprintf(`{"kind":%q`, kind), func() error {
				return errors.New("a link is written")
			})
			if err := of.write(gone, l); err != nil {
				t.Errorf("links that are gone: %v", err)
			}
		})
	}
}

// A list may go on behind the links of its run. Those are not the run's.
func TestExportHasTheLinksOfTheRun(t *testing.T) {
	l := newLinked(t)
	l.job.Links = 3
	var text bytes.Buffer
	e := &exporter{Resource: Resource{Store: l.store}, view: l.view, customer: "alice",
		lines: json.NewEncoder(&text)}
	if err := e.links(t.Context(), &l.job); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), `{"kind":"link"`); n != 3 {
		t.Errorf("%d links", n)
	}
}
