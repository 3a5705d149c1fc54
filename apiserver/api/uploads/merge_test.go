package uploads_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// merges does the work of the ingest role for open merges, until it is stopped.
func (r *rig) merges(t *testing.T) (stop func()) {
	t.Helper()
	kind := ingest.Merge(ingest.ImportConfig{Client: r.Client, Store: r.store,
		History: client.NewHistory(r.store), IDs: r.IDs, Clock: r.Clock, Dir: t.TempDir()})
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
			for _, item := range r.Client.View().WorkOf(work.Merge, "alice") {
				if _, err := kind.Step(t.Context(), work.Item{ID: item.ID, Args: item.Args,
					Customer: item.Customer}); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}

// file uploads JSON Lines as a new scraper, and imports them.
func (r *rig) file(t *testing.T, name, lines string) (scraper, job string) {
	t.Helper()
	made := r.Call(t, r.first(name, "jsonl", jsonl, lines))
	r.imports(t, made.Text("jobId"))
	r.Clock.Advance(1e9)
	return made.Text("scraper.id"), made.Text("jobId")
}

// merge is the call that merges runs.
func (r *rig) merge(name, key string, status int, code string, runs ...string) apitest.Scenario {
	return apitest.Scenario{Name: name, As: apitest.User, Status: status, Code: code,
		Header: map[string]string{"Idempotency-Key": key},
		Do: "PUT /api/scraper/data/group/" + r.group.String() + "/merge?" +
			url.Values{"scraperJobStatusIds": runs}.Encode()}
}

// Runs are merged into the group's sibling. The list shows the sibling with its group. A repeated
// call gets the first answer.
func TestMergeOfRuns(t *testing.T) {
	r := start(t)
	_, one := r.file(t, "one", `{"title":"x","a":"1"}`+"\n"+`{"title":"y","a":"2"}`)
	two, second := r.file(t, "two", `{"title":"x","b":"7"}`)
	stop := r.merges(t)
	whole := r.merge("whole", "k", 200, "", one, second)
	whole.Has = map[string]any{"mergedItems": 1}
	first := r.Call(t, whole)
	again := whole
	again.Headers = map[string]string{"Idempotency-Replayed": "true"}
	again.Has = map[string]any{"mergedItems": 1, "jobId": first.Text("jobId")}
	r.Run(t, again)
	sibling := r.Client.View().Sibling(r.group, client.Enriched)
	r.Run(t, apitest.Scenario{Name: "list", As: apitest.Reader, Do: "GET /api/scraper/group/list",
		Status: 200, Has: map[string]any{"0.enrichedOf": nil, "0.matchedOf": nil,
			"1.name": "files_enriched", "1.enrichedOf": r.group.String(), "1.matchedOf": nil}},
		apitest.Scenario{Name: "scrapers", As: apitest.Reader, Do: "GET /api/scraper/list",
			Status: 200, Has: map[string]any{"items.0.name": "two", "items.1.name": "one"},
			Lacks: []string{"items.2"}},
		apitest.Scenario{Name: "rows", As: apitest.Reader, Status: 200,
			Do: "GET /api/scraper/data/group/" + sibling.ID.String() + "?isLastRun=true",
			Has: map[string]any{"totalElements": 1, "content.0.title": "x", "content.0.a": "1",
				"content.0.b": "7", "content.0._jobId": first.Text("jobId")}},
		apitest.Scenario{Name: "history", As: apitest.Reader, Status: 200,
			Do:  "GET /api/scraper/load-history",
			Has: map[string]any{"totalElements": 3, "content.0.itemsQuantity": 1}},
		apitest.Scenario{Name: "notice", As: apitest.Reader, Status: 200,
			Do:  "GET /api/notifications",
			Has: map[string]any{"content.0.event": "MERGE_COMPLETED"}},
		apitest.Scenario{Name: "what the group's deletion reaches", As: apitest.User, Status: 200,
			Do: "POST /api/scraper/group/" + r.group.String() + "/preview-delete",
			Has: map[string]any{"previewSummary.warnings.3": "This deletes the group " +
				"files_enriched, too, which was made of it."}})
	r.takesNoFiles(t, sibling.ID)
	// only the newest run of a scraper counts, and the earlier merge stays meanwhile
	sent := r.Call(t, next(two, "format=jsonl", jsonl, `{"title":"z"}`))
	r.imports(t, sent.Text("jobId"))
	r.Run(t, r.merge("an old run", "l", 422, "nothing_merged", one, second))
	none := r.merge("no title", "m", 422, "nothing_merged", one, sent.Text("jobId"))
	r.Run(t, none, none)
	r.Client.Must(t, client.ChooseFree{Customer: "alice"})
	r.Run(t, r.merge("the plan", "n", 402, "feature_not_in_plan", one, second), again)
	stop()
	if left, err := r.store.Count(t.Context(), client.Shown(r.Client.View(), sibling.ID,
		ids.ID{}), nil); err != nil || left != 1 {
		t.Errorf("%d rows, %v", left, err)
	}
}

// takesNoFiles tries to upload rows to a group that the service makes, also as a check.
func (r *rig) takesNoFiles(t *testing.T, group ids.ID) {
	t.Helper()
	var scraper ids.ID
	r.Client.View().GroupScrapers(group, func(s *client.Scraper) bool {
		scraper = s.ID
		return true
	})
	first := r.first("x", "csv", csv, "a\n1\n")
	first.Do = strings.Replace(first.Do, r.group.String(), group.String(), 1)
	for field, sc := range map[string]apitest.Scenario{"groupId": first,
		"scraperId": next(scraper.String(), "format=csv", csv, "a\n1\n")} {
		sc = refused("a file by "+field, sc, 400, "invalid_request")
		sc.Has = map[string]any{"errors.0.field": field}
		check := sc
		check.Name, check.Do, check.Body = sc.Name+", checked", sc.Do+"&check=true", ""
		r.Run(t, sc, check)
	}
}

// Impossible merges are refused and make nothing.
func TestMergesThatAreRefused(t *testing.T) {
	r := start(t)
	scraper, one := r.file(t, "one", `{"title":"x"}`)
	_, two := r.file(t, "two", `{"title":"x"}`)
	open := r.Call(t, r.first("open", "csv", csv, "title\nx\n")).Text("jobId")
	none := r.merge("no run", "1", 400, "invalid_request")
	keyless := r.merge("no key", "", 400, "idempotency_key_required", one, two)
	keyless.Header = nil
	foreign := r.merge("foreign", "2", 400, "not_found", one, two)
	foreign.As = apitest.Other
	reader := r.merge("reader", "3", 403, "scope_rejected", one, two)
	reader.As = apitest.Reader
	var many []string
	for range 101 {
		many = append(many, r.IDs.New().String())
	}
	r.Run(t, none, keyless, foreign, reader,
		r.merge("too many", "4", 400, "invalid_request", many...),
		r.merge("no id", "5", 400, "invalid_id", one, "x"),
		r.merge("one run", "6", 422, "nothing_merged", one),
		r.merge("twice the same", "7", 422, "nothing_merged", one, one),
		r.merge("an unknown one", "8", 422, "nothing_merged", one, many[0]),
		r.merge("not completed", "9", 422, "nothing_merged", one, open))
	other := r.NewGroup(t, "alice", "other")
	elsewhere := r.merge("another group", "10", 422, "nothing_merged", one, two)
	elsewhere.Do = fmt.Sprintf("PUT /api/scraper/data/group/%s/merge?scraperJobStatusIds=%s"+
		"&scraperJobStatusIds=%s", other, one, two)
	unknown := elsewhere
	unknown.Name, unknown.Status, unknown.Code = "no group", 400, "not_found"
	unknown.Do = fmt.Sprintf("PUT /api/scraper/data/group/%s/merge?scraperJobStatusIds=%s",
		r.IDs.New(), one)
	r.Run(t, elsewhere, unknown)
	r.Client.Must(t, client.ChooseFree{Customer: "alice"})
	r.Run(t, r.merge("the plan", "11", 402, "feature_not_in_plan", one, two))
	if r.Client.View().Sibling(r.group, client.Enriched) != nil || scraper == "" {
		t.Error("a call that was refused has made something")
	}
}

// A call that has waited long enough answers with the run, and waits again if repeated. During a
// merge no other one can begin.
func TestMergeThatLasts(t *testing.T) {
	r := start(t)
	_, one := r.file(t, "one", `{"title":"x"}`)
	_, two := r.file(t, "two", `{"title":"x"}`)
	answered := make(chan apitest.Answer)
	go func() { answered <- r.Call(t, r.merge("first", "k", 202, "", one, two)) }()
	var job string
	for job == "" {
		select {
		case a := <-answered:
			count, known := a.At("mergedItems")
			if job = a.Text("jobId"); a.Status != 202 || count != nil || !known {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
		case <-time.After(time.Millisecond):
			r.Clock.Advance(time.Second)
		}
	}
	another := r.merge("another", "l", 409, "ALREADY_RUNNING", one, two)
	another.Has = map[string]any{"detail": "a merge of the group is under way"}
	r.Run(t, another)
	defer r.merges(t)()
	after := r.merge("again", "k", 200, "", one, two)
	after.Has = map[string]any{"mergedItems": 1, "jobId": job}
	r.Run(t, after)
}
