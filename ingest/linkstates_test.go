package ingest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/work"
)

// visited is a customer with scrapers; the first one has a site.
type visited struct {
	t        *testing.T
	clock    *clock.Manual
	ids      ids.Sequence
	client   *clienttest.Client
	store    *sqlite.Store
	scrapers []ids.ID
	site     client.Site
	progress []byte
}

func newVisited(t *testing.T) *visited {
	t.Helper()
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	at := clock.NewManual(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC))
	v := &visited{t: t, clock: at, client: clienttest.New(t, at), store: store}
	v.client.Must(t, client.OpenCustomer{Customer: "ann", Entry: v.ids.New()})
	v.client.Must(t, client.AdjustWallet{Customer: "ann", Entry: v.ids.New(), Amount: 1e9})
	group := v.ids.New()
	v.client.Must(t, client.PutGroup{Create: true, ID: group, Customer: "ann", Name: "g"})
	for n := range 2 {
		v.scrapers = append(v.scrapers, v.ids.New())
		v.client.Must(t, client.PutScraper{Create: true, ID: v.scrapers[n], Customer: "ann",
			Group: group, Spec: model.Scraper{Name: fmt.Sprint(n), Type: model.SingleProduct}})
	}
	version := v.ids.New()
	var links []rowstore.SiteLink
	for n := range 4 {
		links = append(links, rowstore.SiteLink{Seq: uint32(n), URL: linkAt(n),
			Hash: rowstore.LinkHash(linkAt(n))})
	}
	v.must(store.PutSiteLinks(t.Context(), version, links))
	v.must(store.FinishSite(t.Context(), version, uint32(len(links))))
	v.site = v.client.Must(t, client.PutSite{ID: v.ids.New(), Customer: "ann",
		Scraper: v.scrapers[0], Version: version, Links: uint32(len(links))}).(client.Site)
	return v
}

// linkAt returns an address; for n below 0, one that is no longer valid.
func linkAt(n int) string {
	if n < 0 {
		return "https://[/"
	}
	return fmt.Sprintf("https://a.test/%d", n)
}

func (v *visited) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// run makes an ended run over links in some order, with these outcomes of each chain's pages.
func (v *visited) run(scraper ids.ID, links []int, outcomes ...[]model.Outcome) {
	v.t.Helper()
	v.clock.Advance(time.Second)
	run := client.LaunchRun{Job: v.ids.New(), Entry: v.ids.New(), Customer: "ann",
		Scraper: scraper, List: v.ids.New(), Links: uint32(len(links)),
		Tiers: model.TiersOf(model.Plain)}
	list, err := v.store.CreateList(v.t.Context(), run.List)
	v.must(err)
	for _, n := range links {
		_, err := list.Add(v.t.Context(), linkAt(n), linkAt(n))
		v.must(err)
	}
	_, err = list.Finish(v.t.Context())
	v.must(err)
	v.client.Must(v.t, run)
	job := rowstore.Job{ID: run.Job, Customer: "ann", Scraper: scraper, Started: 1}
	var pages []rowstore.PageWrite
	for seq, chain := range outcomes {
		v.client.Dispatch(v.t, run.Job, uint32(seq))
		for n, outcome := range chain {
			page := &model.Page{Job: run.Job, Fetch: v.ids.New(), URL: linkAt(links[seq]),
				Unit:    model.Unit{Seq: uint32(seq), Page: uint32(n)},
				Outcome: outcome, Last: n+1 == len(chain)}
			if outcome == model.Delivered {
				page.Quantity, page.PriceRow = 1, "tier:plain"
			}
			pages = append(pages, rowstore.PageWrite{Job: job, Page: page})
		}
	}
	receipts, err := v.store.PutPages(v.t.Context(), pages)
	v.must(err)
	for _, receipt := range receipts {
		v.must(v.client.Settle(v.t.Context(), []model.Receipt{*receipt}, nil))
	}
	v.client.Must(v.t, client.StopRun{Customer: "ann", Job: run.Job})
	v.must(v.store.Seal(v.t.Context(), run.Job, nil))
	v.client.CloseRun(v.t, run.Job)
}

// tell updates the states until the work rests. It dies at the point numbered dies; 0: at none.
func (v *visited) tell(dies int) {
	v.t.Helper()
	kind := LinkStates(LinkStatesConfig{View: v.client.View, Store: v.store,
		History: client.NewHistory(v.store), Point: func(string) {
			if dies--; dies == 0 {
				panic("dies")
			}
		}})
	step := func() (outcome work.Outcome, died bool) {
		defer func() { died = recover() != nil }()
		outcome, err := kind.Step(v.t.Context(), work.Item{Progress: v.progress})
		v.must(err)
		return outcome, false
	}
	for {
		outcome, died := step()
		if died {
			continue // another node continues from the same progress
		}
		if v.progress = outcome.Progress; outcome.End == work.Rested {
			return
		}
	}
}

// is compares the states of the site's links with the wanted ones.
func (v *visited) is(want ...rowstore.LinkState) {
	v.t.Helper()
	var got []rowstore.LinkState
	links, err := v.store.SiteLinks(v.t.Context(), rowstore.SiteQuery{Version: v.site.Version,
		Site: v.site.ID, Limit: rowstore.MaxSitePart})
	v.must(err)
	for _, l := range links {
		got = append(got, l.State)
	}
	if !slices.Equal(got, want) {
		v.t.Errorf("the states are %v, want %v", got, want)
	}
}

// Links have the states that the newest run gave them, in whatever order runs are read. A chain
// with an error is an error. Where a node dies, and what has left the state, does not matter.
func TestLinkStatesFollowRuns(t *testing.T) {
	const (
		pending, visited, errored = rowstore.LinkPending, rowstore.LinkVisited, rowstore.LinkErrored
		d, e                      = model.Delivered, model.Errored
	)
	for _, dies := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			v := newVisited(t)
			v.tell(0)
			v.is(pending, pending, pending, pending)
			v.run(v.scrapers[0], []int{2, 0, 1, 3}, []model.Outcome{d}, []model.Outcome{d, d, e},
				[]model.Outcome{e})
			v.run(v.scrapers[1], []int{3}, []model.Outcome{e}) // its scraper has no site
			v.tell(dies)
			v.is(errored, errored, visited, pending)
			v.run(v.scrapers[0], []int{0, 1}, []model.Outcome{d, d}, []model.Outcome{e})
			v.run(v.scrapers[0], []int{1, 3}, []model.Outcome{d}, []model.Outcome{model.Duplicate})
			v.client.Archive(t, v.store, 0)
			v.tell(dies)
			v.is(visited, visited, visited, visited)
			v.progress = nil // as after a restore of an older backup
			v.tell(dies)
			v.is(visited, visited, visited, visited)
		})
	}
}

// A rule for addresses may have become stricter since a list was taken. The run's other links, and
// later runs, still get their states.
func TestOneAddressThatIsNoneStopsNoStates(t *testing.T) {
	v := newVisited(t)
	d := []model.Outcome{model.Delivered}
	v.run(v.scrapers[0], []int{0, -1, 2}, d, d, d)
	v.run(v.scrapers[0], []int{1}, []model.Outcome{model.Errored})
	v.tell(0)
	v.is(rowstore.LinkVisited, rowstore.LinkErrored, rowstore.LinkVisited, rowstore.LinkPending)
}

// Where nobody has a site, a new node does not read the history that has left the state.
func TestLinkStatesReadNoHistoryForNobody(t *testing.T) {
	v := newVisited(t)
	v.run(v.scrapers[0], []int{0}, []model.Outcome{model.Delivered})
	v.client.Archive(t, v.store, 0)
	v.client.Must(t, client.DeleteSite{ID: v.site.ID, Customer: "ann"})
	kind := LinkStates(LinkStatesConfig{View: v.client.View, Store: v.store,
		History: client.NewHistory(nothingPast{})})
	outcome, err := kind.Step(t.Context(), work.Item{})
	if err != nil || outcome.End != work.Rested {
		t.Fatalf("the step ended as %v, %v", outcome, err)
	}
	v.progress = outcome.Progress
	version := v.ids.New()
	v.must(v.store.PutSiteLinks(t.Context(), version, []rowstore.SiteLink{{URL: linkAt(0),
		Hash: rowstore.LinkHash(linkAt(0))}}))
	v.must(v.store.FinishSite(t.Context(), version, 1))
	v.site = v.client.Must(t, client.PutSite{ID: v.ids.New(), Customer: "ann",
		Scraper: v.scrapers[0], Version: version, Links: 1}).(client.Site)
	v.run(v.scrapers[0], []int{0}, []model.Outcome{model.Errored})
	v.tell(0)
	v.is(rowstore.LinkErrored)
}

// nothingPast is an archive that must not be read.
type nothingPast struct{ rowstore.Archive }

// What a run says is ignored if its site or its list is gone.
func TestLinkStatesOfWhatIsGone(t *testing.T) {
	v := newVisited(t)
	v.run(v.scrapers[0], []int{0}, []model.Outcome{model.Delivered})
	lists, err := v.store.AllLists(t.Context())
	v.must(err)
	for _, list := range lists {
		v.must(v.store.DropList(t.Context(), list.ID))
	}
	v.tell(0)
	v.is(rowstore.LinkPending, rowstore.LinkPending, rowstore.LinkPending, rowstore.LinkPending)
	v.run(v.scrapers[0], []int{0}, []model.Outcome{model.Delivered})
	v.client.Must(t, client.DeleteSite{ID: v.site.ID, Customer: "ann"})
	v.tell(0)
	stated, err := v.store.StatedSites(t.Context())
	v.must(err)
	if len(stated) != 0 {
		t.Errorf("there are states of the sites %v", stated)
	}
}
