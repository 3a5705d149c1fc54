package uploads_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// catalogue is the call that uploads a product file.
func catalogue(name, query, media, file string) apitest.Scenario {
	return apitest.Scenario{Name: name, As: apitest.Admin, Status: 200, Body: file,
		Header: map[string]string{"Content-Type": media}, Do: "PUT /api/admin/catalogue" + query}
}

// looks reads through a catalogue.
func (r *rig) looks(t *testing.T, id string) {
	t.Helper()
	parsed, err := ids.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	kind := ingest.Catalogue(ingest.CatalogueConfig{Client: r.Client, Files: r.blobs})
	if _, err := kind.Step(t.Context(), work.Item{ID: parsed}); err != nil {
		t.Fatal(err)
	}
}

const catalogueStatus = "GET /api/admin/catalogue/status"

// A catalogue stays until the next one is complete, and a failing one changes nothing.
func TestCatalogue(t *testing.T) {
	r := start(t)
	status := func(name string, has map[string]any) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: name, As: apitest.Admin, Do: catalogueStatus, Status: 200,
			Has: has})
	}
	status("none", map[string]any{"current": nil, "next": nil, "failed": nil})
	first := r.Call(t, catalogue("csv", "?format=csv", csv, "id,title\na,one\nb,two\n"))
	status("first is read", map[string]any{"current": nil, "next.id": first.Text("id"),
		"next.state": "READING", "next.bytes": 21, "next.endedAt": nil, "failed": nil})
	r.looks(t, first.Text("id"))
	status("first", map[string]any{"current.id": first.Text("id"), "current.products": 2,
		"current.state": "READY", "next": nil, "failed": nil})
	second := r.Call(t, catalogue("jsonl", "?format=jsonl", jsonl, `{"id":"x"}`))
	r.looks(t, second.Text("id"))
	status("second fails", map[string]any{"current.id": first.Text("id"), "next": nil,
		"failed.id": second.Text("id"), "failed.state": "FAILED"})
	third := catalogue("JSON", "", "application/json",
		`{"format":"csv","content":"sku,ean\n1,4006381333931\n"}`)
	sent := r.Call(t, third)
	r.looks(t, sent.Text("id"))
	status("third", map[string]any{"current.id": sent.Text("id"), "current.products": 1,
		"failed": nil})
}

// Invalid catalogues are refused and leave nothing behind.
func TestCataloguesThatAreRefused(t *testing.T) {
	r := start(t)
	good := catalogue("", "?format=csv", csv, "id,title\na,b\n")
	user := refused("a customer", good, 401, "unauthorized")
	user.As = apitest.User
	r.Run(t, user,
		refused("another type", catalogue("", "?format=jsonl", csv, "x"), 415,
			"unsupported_media_type"),
		refused("xlsx", catalogue("", "?format=xlsx", csv, "x"), 400, "BAD_FORMAT"),
		refused("no format", catalogue("", "", csv, "x"), 400, "BAD_FORMAT"),
		refused("unknown", catalogue("", "?format=tsv", csv, "x"), 400, "BAD_FORMAT"),
		refused("a customer asks", apitest.Scenario{As: apitest.User, Do: catalogueStatus}, 401,
			"unauthorized"))
	page, err := r.blobs.List(t.Context(), blobstore.Catalogues, "", nil)
	if err != nil || len(page.Blobs) != 0 {
		t.Errorf("%d files are left, %v", len(page.Blobs), err)
	}
}
