package launch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// everyHost lets every host be reached. asked, if set, is called for each check.
type everyHost struct {
	anywhere
	asked func()
}

func (e *everyHost) CheckHost(context.Context, string, string) error {
	if e.asked != nil {
		e.asked()
	}
	return nil
}

// rig is a launcher without a server, as background work would use it.
type rig struct {
	*Launcher
	state   *clienttest.Client
	guard   *everyHost
	group   ids.ID
	scraper ids.ID
}

func newRig(t *testing.T) *rig {
	t.Helper()
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	r := &rig{state: clienttest.New(t, now), guard: &everyHost{}}
	r.Launcher = &Launcher{Client: r.state, Store: store, History: client.NewHistory(store),
		Clock: now,
		IDs:   ids.Random{Now: now.Now}, Guard: r.guard, Node: "test",
		Logger: slog.New(slog.DiscardHandler),
		Plans:  plans.NewSource(plans.Standard())}
	r.Boot, r.group, r.scraper = r.IDs.New(), r.IDs.New(), r.IDs.New()
	r.state.Must(t, client.OpenCustomer{Customer: "alice", Entry: r.IDs.New()})
	r.state.Must(t, client.PutGroup{Create: true, ID: r.group, Customer: "alice", Name: "g",
		DataTable: "t", StartType: "MANUAL"})
	r.state.Must(t, client.PutScraper{Create: true, ID: r.scraper, Customer: "alice",
		Group: r.group, Spec: model.Scraper{Name: "shop", Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"}, ItemsConfig: title}})
	return r
}

var title = []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}

func (r *rig) caller(key string) *Caller {
	from := &Caller{Principal: auth.Principal{Customer: "alice"}, View: r.state.View(),
		Operation: "test"}
	if key != "" {
		from.Call = &client.Call{Customer: "alice", Operation: "test", Key: key}
	}
	return from
}

// wantLists expects this many lists, each with its own job, and no claim in progress.
func (r *rig) wantLists(t *testing.T, n int) {
	t.Helper()
	lists, err := r.Store.AllLists(t.Context())
	if err != nil || len(lists) != n {
		t.Fatalf("%d lists, want %d: %v", len(lists), n, err)
	}
	for _, list := range lists {
		if r.state.View().JobOfList(list.ID) == nil {
			t.Errorf("list %s has no job", list.ID)
		}
	}
	if claims := r.state.View().ClaimsUnderWay("test"); len(claims) > 0 {
		t.Errorf("%d claims are left", len(claims))
	}
}

func TestStart(t *testing.T) {
	for _, key := range []string{"", "k"} {
		r := newRig(t)
		first := r.caller(key)
		launched, err := r.Start(t.Context(), first, r.scraper, nil)
		if err != nil || launched.Job.IsZero() || first.Job != launched.Job {
			t.Fatalf("key %q: %+v, job %s: %v", key, launched, first.Job, err)
		}
		r.wantLists(t, 1)
		second := r.caller(key)
		again, err := r.Start(t.Context(), second, r.scraper, nil)
		switch {
		case key != "" && (err != nil || again.Job != launched.Job || second.Job != launched.Job):
			t.Errorf("under the same key: %+v, job %s: %v", again, second.Job, err)
		case key == "" && (fault.CodeOf(err) != fault.ScraperAlreadyRunning ||
			!second.Job.IsZero()):
			t.Errorf("while it runs: job %s: %v", second.Job, err)
		}
		r.wantLists(t, 1)
	}
}

// TestUnknownIsNotRefused: a caller who cannot know whether the run was made is told its id.
func TestUnknownIsNotRefused(t *testing.T) {
	r := newRig(t)
	r.guard.asked = func() { r.state.Fail(clienttest.Down()) }
	from := r.caller("k")
	_, err := r.Start(t.Context(), from, r.scraper, nil)
	if fault.CodeOf(err) != fault.Unavailable || from.Job.IsZero() {
		t.Errorf("job %s: %v", from.Job, err)
	}
	r.state.Fail(nil)
	if lists, err := r.Store.AllLists(t.Context()); err != nil || len(lists) != 1 {
		t.Errorf("%d lists, want the one that the run may have: %v", len(lists), err)
	}
}

// file is a list that comes as a whole.
type file struct {
	from io.Reader
	kept bytes.Buffer
}

func (f *file) Receive(_ context.Context,
	refine func(to io.Writer, body io.Reader) error) error {
	return refine(&f.kept, f.from)
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.kept.Bytes()).ReadAt(p, off)
}

func TestStartListFromAFile(t *testing.T) {
	r := newRig(t)
	list := func(text string) *List {
		return &List{Group: r.group, Name: "list", Fields: title,
			Stream: &file{from: strings.NewReader(text)}, Line: URILine}
	}
	from := r.caller("")
	_, err := r.StartList(t.Context(), from, list("https://a.test/\nnonsense\n"))
	coded := (*fault.Error)(nil)
	if !errors.As(err, &coded) || coded.Code != fault.InvalidURL || coded.Field != "line 2" ||
		!from.Job.IsZero() {
		t.Errorf("job %s: %v", from.Job, err)
	}
	r.wantLists(t, 0)
	launched, err := r.StartList(t.Context(), from,
		list("https://a.test/\n# again\nhttps://A.test:443/\nhttps://b.test/\n"))
	if err != nil || launched.Links != 2 || launched.Dropped != 1 || from.Job != launched.Job {
		t.Errorf("%+v, job %s: %v", launched, from.Job, err)
	}
	r.wantLists(t, 1)
}

func TestStartTrial(t *testing.T) {
	r := newRig(t)
	from := r.caller("")
	trial := &Trial{Source: model.SourcePreviewURL, URL: "https://{{token}}.test/", Field: "url",
		Group: r.group, Recipe: model.Recipe{Type: model.SingleProduct, Fields: title}}
	if err := r.StartTrial(t.Context(), from, trial); fault.CodeOf(err) != fault.InvalidURL ||
		!from.Job.IsZero() {
		t.Errorf("job %s: %v", from.Job, err)
	}
	trial.URL = "https://shop.test/"
	if err := r.StartTrial(t.Context(), from, trial); err != nil {
		t.Fatal(err)
	}
	if job := r.state.View().Job(from.Job); job == nil || !job.Trial() {
		t.Errorf("job %s is %+v", from.Job, job)
	}
	r.wantLists(t, 1)
}
