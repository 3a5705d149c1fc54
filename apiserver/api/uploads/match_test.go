package uploads_test

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// matches does the work of the ingest role for the customer's open match.
func (r *rig) matches(t *testing.T) {
	t.Helper()
	kind := ingest.Match(ingest.ImportConfig{Client: r.Client, Store: r.store, Files: r.blobs,
		History: client.NewHistory(r.store), IDs: r.IDs, Clock: r.Clock, Dir: t.TempDir()})
	for _, item := range r.Client.View().WorkOf(work.Match, "alice") {
		var outcome work.Outcome
		for end := work.Held; end != work.Ended; end = outcome.End { // it records what it reads
			var err error
			if outcome, err = kind.Step(t.Context(), work.Item{ID: item.ID, Args: item.Args,
				Customer: item.Customer, Progress: outcome.Progress}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Clock.Advance(time.Second)
}

// match is the call that matches the group.
func (r *rig) match(name, key string, status int, code string) apitest.Scenario {
	return apitest.Scenario{Name: name, As: apitest.User, Status: status, Code: code,
		Header: map[string]string{"Idempotency-Key": key},
		Do:     "PUT /api/scraper/group/" + r.group.String() + "/match"}
}

// Rows of a group find their products. The call is answered once the match is queued, also if
// repeated. Another call must wait for its end.
func TestMatchOfGroup(t *testing.T) {
	r := start(t)
	scraper, _ := r.file(t, "shop", `{"title":"Stabilo point 88","ean":"4006381333931"}`+"\n"+
		`{"title":"nothing like it"}`)
	r.Run(t, r.match("not of the group", "a", 400, "invalid_request"))
	group := apitest.Scenario{Name: "group", As: apitest.User, Status: 200,
		Header: map[string]string{"Idempotency-Key": "g"}, Do: "PUT /api/scraper/group",
		Body: `{"id":"` + r.group.String() + `","name":"files","shouldMatchProducts":true}`}
	r.Run(t, group, r.match("no catalogue", "b", 400, "invalid_request"))
	sent := r.Call(t, catalogue("products", "?format=csv", csv, "id,gtin\npen,4006381333931\n"))
	r.looks(t, sent.Text("id"))
	reader := r.match("a reader", "c", 403, "scope_rejected")
	reader.As = apitest.Reader
	other := r.match("another customer", "d", 400, "not_found")
	other.As = apitest.Other
	keyless := r.match("no key", "", 400, "idempotency_key_required")
	keyless.Header = nil
	again := r.match("again", "e", 204, "")
	again.Headers = map[string]string{"Idempotency-Replayed": "true"}
	r.Run(t, reader, other, keyless, r.match("queued", "e", 204, ""), again,
		r.match("another", "f", 400, "invalid_request"))
	r.matches(t)
	view := r.Client.View()
	sibling := view.Sibling(r.group, client.Matched)
	r.Run(t, again,
		apitest.Scenario{Name: "rows", As: apitest.Reader, Status: 200,
			Do: "GET /api/scraper/data/group/" + sibling.ID.String() + "?isLastRun=true",
			Has: map[string]any{"totalElements": 1, "content.0.catalogueId": "pen",
				"content.0.score": 1, "content.0.method": "gtin"}},
		apitest.Scenario{Name: "list", As: apitest.Reader, Do: "GET /api/scraper/group/list",
			Status: 200, Has: map[string]any{"1.name": "files_matched",
				"1.matchedOf": r.group.String()}},
		apitest.Scenario{Name: "notice", As: apitest.Reader, Status: 200,
			Do:  "GET /api/notifications",
			Has: map[string]any{"content.0.event": "MATCH_COMPLETED"}})
	if id, err := ids.Parse(scraper); err != nil || !view.Protects(view.Scraper(id)) {
		t.Errorf("the upload is not protected, %v", err)
	}
	r.Run(t, r.match("the next", "h", 204, ""))
	r.matches(t)
	left, err := r.store.Count(t.Context(), client.Shown(r.Client.View(), sibling.ID, ids.ID{}),
		nil)
	if err != nil || left != 1 {
		t.Errorf("%d rows, %v", left, err)
	}
	r.Client.Must(t, client.ChooseFree{Customer: "alice"})
	group.Header = map[string]string{"Idempotency-Key": "no match"}
	group.Body = strings.Replace(group.Body, "true", "false", 1)
	r.Run(t, r.match("the plan", "i", 402, "feature_not_in_plan"), group, again)
}
