package data_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// openReads reads the first row of each query and returns the cursors.
func (r *rig) openReads(t *testing.T, reads map[string]string) map[string]string {
	t.Helper()
	cursors := map[string]string{}
	for name, query := range reads {
		cursors[name] = r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
			Do: readPath + "?limit=1&" + query}).Text("nextCursor")
	}
	return cursors
}

// readOn reads one more row with each cursor. Those named in ends must be refused.
func (r *rig) readOn(t *testing.T, when string, reads, cursors map[string]string, ends ...string) {
	t.Helper()
	for name, query := range reads {
		s := apitest.Scenario{Name: name + ", " + when, As: apitest.User, Status: 200,
			Do: readPath + "?limit=1&" + query + "&cursor=" + cursors[name]}
		if slices.Contains(ends, name) {
			s.Status, s.Code = 400, "invalid_cursor"
		}
		r.Run(t, s)
	}
}

// remove makes both calls of a deletion.
func (r *rig) remove(t *testing.T, preview, remove, query string) {
	t.Helper()
	r.Run(t,
		apitest.Scenario{Name: "preview", As: apitest.User, Do: "POST " + preview + query,
			Status: 200},
		apitest.Scenario{Name: "remove", As: apitest.User, Do: "DELETE " + remove + query,
			Header: map[string]string{"Idempotency-Key": r.IDs.New().String()}, Status: 204})
}

// deleteRun deletes a run's rows as their owner.
func (r *rig) deleteRun(t *testing.T, run ids.ID) {
	t.Helper()
	const path = "/api/scraper/data"
	r.remove(t, path+"/preview-delete", path, "?scraperJobStatusId="+run.String())
}

// A cursor is refused once rows of its read are deleted; it never returns fewer. A cursor of other
// rows continues.
func TestCursorsOfDeletedRows(t *testing.T) { onStores(t, readDeletedRows) }

func readDeletedRows(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	group, shop := "groupId="+r.group.String(), "scraperId="+r.shop.String()
	reads := map[string]string{"group": group, "latest": "isLastRun=true&" + group, "scraper": shop,
		"scraper's latest": "isLastRun=true&" + shop, "sorted": "sort=n,asc&" + shop,
		"first run": "jobId=" + r.jobs[0].String(), "last run": "jobId=" + r.jobs[2].String(),
		"other": "scraperId=" + r.other.String(), "other run": "jobId=" + r.jobs[1].String()}
	before := r.openReads(t, reads)
	r.deleteRun(t, r.jobs[0])
	ends := []string{"group", "scraper", "sorted", "first run"}
	r.readOn(t, "without the first run", reads, before, ends...)
	r.Client.Archive(t, r.store, 0)
	r.readOn(t, "when it has left the state", reads, before, ends...)

	delete(reads, "first run")
	before = r.openReads(t, reads)
	r.run(t, r.shop, `{"n":9}`)
	r.deleteRun(t, r.jobs[3])
	r.readOn(t, "without a run that came later", reads, before)
	r.deleteRun(t, r.jobs[2])
	r.readOn(t, "without the last run", reads, before, "group", "latest", "scraper",
		"scraper's latest", "sorted", "last run")

	delete(reads, "last run")
	r.run(t, r.shop, `{"n":1}`, `{"n":2}`)
	before = r.openReads(t, reads)
	path := "/api/scraper/" + r.other.String()
	r.remove(t, path+"/preview-delete", path, "?withData=true")
	removed := r.Client.View().RemovalsOf("alice")
	for _, gone := range removed { // the background work has removed them
		r.Client.Must(t, client.ForgetRemovals{Removals: []client.RemovalRef{{Group: gone.Group,
			Scraper: gone.Scraper}}})
	}
	delete(reads, "other") // the scraper no longer exists
	if err := r.store.DeleteJob(t.Context(), r.jobs[1], false); err != nil {
		t.Fatal(err)
	}
	r.readOn(t, "without a scraper", reads, before, "group", "latest", "other run")
	delete(reads, "other run")
	r.readOn(t, "begun anew", reads, r.openReads(t, reads))
}

// Rows that outlive their scraper or group can still be read by their run. Other reads end.
func TestCursorsOfRunsOfDeletedOnes(t *testing.T) { onStores(t, readRunsOfDeleted) }

func readRunsOfDeleted(t *testing.T, store rowstore.Store) {
	for name, query := range map[string]string{"kept": "", "deleted": "?withData=true"} {
		for _, what := range []string{"scraper", "group"} {
			r := startOn(t, store)
			reads := map[string]string{"run": "jobId=" + r.jobs[0].String(),
				"sorted": "sort=n,asc&jobId=" + r.jobs[0].String()}
			before := r.openReads(t, reads)
			path := "/api/scraper/" + r.shop.String()
			if what == "group" {
				path = "/api/scraper/group/" + r.group.String()
			}
			r.remove(t, path+"/preview-delete", path, query)
			var ends []string
			if query != "" {
				ends = []string{"run", "sorted"}
			}
			r.readOn(t, name+" with its "+what, reads, before, ends...)
		}
	}
}

// A scraper's groups are read one after the other, and a move changes their order.
func TestCursorsOfMovedScraper(t *testing.T) {
	r := start(t)
	first, second := r.group, r.NewGroup(t, "alice", "second")
	move := func(to ids.ID) {
		t.Helper()
		r.Client.Must(t, client.PutScraper{ID: r.shop, Customer: "alice", Group: to,
			Spec: model.Scraper{Name: "shop", Type: model.SingleProduct}})
	}
	reads := map[string]string{"scraper": "scraperId=" + r.shop.String()}
	before := r.openReads(t, reads)
	move(second)
	r.readOn(t, "moved on", reads, before)
	before = r.openReads(t, reads)
	move(first)
	r.readOn(t, "moved back", reads, before, "scraper")
}

// A read of latest runs sees those that were the latest when it began.
func TestLatestRunsStayAsTheyWere(t *testing.T) {
	r := start(t)
	reads := map[string]string{"latest": "isLastRun=true&groupId=" + r.group.String()}
	pending := func() ids.ID {
		t.Helper()
		r.ended(t, r.shop, model.Pending)
		return r.Client.View().Scraper(r.shop).LastJob
	}
	run := pending()
	before := r.openReads(t, reads)
	r.Client.Dispatch(t, run, 0)
	r.readOn(t, "when a newer run has begun", reads, before)
	if got := numbers(r.Call(t, apitest.Scenario{As: apitest.User, Status: 200, Do: readPath +
		"?" + reads["latest"] + "&cursor=" + before["latest"]}), "items"); got != "5678" {
		t.Errorf("the rest of the rows is %s", got)
	}
	r = start(t)
	reads["latest"] = "isLastRun=true&groupId=" + r.group.String()
	run = pending()
	r.run(t, r.other, `{"n":9}`, `{"n":0}`)
	before = r.openReads(t, reads)
	r.readOn(t, "while it waits", reads, before)
	r.Client.Dispatch(t, run, 0)
	r.readOn(t, "when one of before it has begun", reads, before, "latest")
}

// A run that was hidden when a read of latest runs began is not part of it, even once it ends.
func TestLatestRunsPassOverHiddenOnes(t *testing.T) {
	r := start(t)
	r.quarantine(t)
	fresh, again := r.delivered(t, r.scraper(t, "new"), `{"n":9}`),
		r.delivered(t, r.shop, `{"n":9}`)
	r.run(t, r.other, `{"n":1}`, `{"n":2}`)
	reads := map[string]string{"latest": "isLastRun=true&groupId=" + r.group.String()}
	before := r.openReads(t, reads)
	r.Client.CloseRun(t, fresh)
	r.Client.CloseRun(t, again)
	rest := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: readPath + "?" + reads["latest"] + "&cursor=" + before["latest"]})
	if got := numbers(rest, "items"); got != "7812" {
		t.Errorf("the rest of the rows is %s", got)
	}
}

// A run that was hidden when a read began stays hidden from it: no page has some of its rows. A
// cursor has room for only a few such runs.
func TestHiddenRunsStayHidden(t *testing.T) {
	type read struct {
		hidden int
		sort   string
	}
	for _, c := range []read{{1, ""}, {8, ""}, {9, ""}, {1, "&sort=name,desc"},
		{8, "&sort=name,desc"}} {
		t.Run(fmt.Sprint(c.hidden, c.sort), func(t *testing.T) {
			r := start(t)
			r.run(t, r.shop, fmt.Sprintf(`{"n":0,"name":"%s"}`, strings.Repeat("𝄞", 100)))
			r.quarantine(t)
			var run ids.ID
			for n := range c.hidden {
				run = r.delivered(t, r.scraper(t, fmt.Sprint("hidden ", n)), `{"n":9}`)
			}
			r.run(t, r.other, `{"n":0}`)
			reads := map[string]string{"group": "groupId=" + r.group.String() + c.sort}
			before := r.openReads(t, reads)
			r.Client.CloseRun(t, run)
			if c.hidden > 8 {
				r.readOn(t, "when one of many is shown", reads, before, "group")
				return
			}
			rest := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
				Do: readPath + "?" + reads["group"] + "&cursor=" + before["group"]})
			if got := numbers(rest, "items"); len(got) != 9 || strings.Contains(got, "9") {
				t.Errorf("the rest of the rows is %s", got)
			}
			anew := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
				Do: readPath + "?" + reads["group"]})
			if got := numbers(anew, "items"); len(got) != 11 || strings.Count(got, "9") != 1 {
				t.Errorf("read anew: %s", got)
			}
		})
	}
}

// Quarantine hides a run under way whose rows a read has begun to see. The read is refused, and not
// shortened, until the run has ended. Other reads continue.
func TestReadsEndByQuarantine(t *testing.T) {
	r := start(t)
	shop := r.scraper(t, "under way")
	run := r.delivered(t, shop, `{"n":9}`, `{"n":0}`)
	r.run(t, r.other, `{"n":1}`, `{"n":2}`)
	group := "groupId=" + r.group.String()
	reads := map[string]string{"group": group, "sorted": "sort=n,asc&" + group,
		"latest": "isLastRun=true&" + group, "scraper": "scraperId=" + shop.String(),
		"run": "jobId=" + run.String(), "other": "scraperId=" + r.shop.String(),
		"other run": "jobId=" + r.jobs[2].String()}
	before := r.openReads(t, reads)
	r.quarantine(t)
	r.readOn(t, "when the run is hidden", reads, before, "group", "sorted", "latest", "scraper",
		"run")
	r.Client.CloseRun(t, run)
	r.readOn(t, "when it is shown again", reads, before)
}

// A run that was hidden at the call is not part of a kept export.
func TestKeptExportsOfHiddenRuns(t *testing.T) {
	k := startKeeper(t)
	k.quarantine(t)
	hidden := k.delivered(t, k.shop, `{"n":9}`)
	k.rig.run(t, k.other, `{"n":1}`)
	group := "format=csv&fields=n&groupId=" + k.group.String()
	all, latest := k.ask(t, apitest.User, group), k.ask(t, apitest.User, group+"&isLastRun=true")
	k.Client.CloseRun(t, hidden)
	for id, want := range map[ids.ID]string{all: "123456781", latest: "6781"} {
		if end, _ := k.step(t, id, 0); end != work.Ended {
			t.Fatal(end)
		}
		got := k.Call(t, file(apitest.User, id, 200, nil))
		if text := strings.ReplaceAll(string(got.Body), "\n", ""); text != "n"+want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}
