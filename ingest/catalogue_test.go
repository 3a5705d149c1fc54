package ingest

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/work"
)

// catalogue begins a catalogue with a file of products, and returns its id.
func (u *uploaded) catalogue(format, file string) ids.ID {
	u.t.Helper()
	id := u.ids.New()
	if _, err := u.blobs.Put(u.t.Context(), catalogueKey(id), strings.NewReader(file)); err != nil {
		u.t.Fatal(err)
	}
	_, err := client.Do(u.t.Context(), u.client, client.BeginCatalogue{ID: id, Format: format,
		Bytes: int64(len(file)), By: "ada"}, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	return id
}

// lookThrough makes one step of a catalogue's work, and says whether it died.
func (u *uploaded) lookThrough(id ids.ID) (died bool) {
	u.t.Helper()
	defer func() { died = died || recover() != nil }()
	kind := Catalogue(CatalogueConfig{Client: u.client, Files: u.blobs,
		Point: func(name string) { u.point(name) }})
	if _, err := kind.Step(u.t.Context(), work.Item{ID: id}); err != nil {
		u.t.Fatal(err)
	}
	return false
}

func TestCatalogueIsLookedThrough(t *testing.T) {
	u := newUploaded(t)
	u.point = func(string) {}
	for _, c := range []struct {
		format, file string
		products     uint64
		message      string
	}{
		{"csv", "id,EAN,Marke,Bezeichnung\n1,4006381333931,Stabilo,Stift\n2,,,Heft\n", 2, ""},
		{"jsonl", `{"sku":"a","title":"x"}` + "\n" + `{"sku":"b","gtin":"1"}` + "\n", 2, ""},
		{"csv", "id,title\n", 0, "no data rows"},
		{"csv", "name,title\na,b\n", 0, "no column has the ids"},
		{"csv", "id,price\na,b\n", 0, "no column tells products"},
		{"csv", "id,title\na,b\na,c\n", 0, "two products have one id"},
		{"csv", "id,title\na,b\n,c\n", 0, "row 2: the id"},
		{"csv", "id,title\na,b\n" + strings.Repeat("x", match.MaxID+1) + ",c\n", 0,
			"row 2: the id"},
		{"jsonl", "{", 0, "row 1"},
	} {
		id := u.catalogue(c.format, c.file)
		u.lookThrough(id)
		known := u.client.View().Catalogue(id)
		if known == nil || known.Products != c.products ||
			(known.State == client.CatalogueReady) != (c.message == "") ||
			!strings.Contains(known.Message, c.message) {
			t.Errorf("%q: %+v, want %d products, %q", c.file, known, c.products, c.message)
		}
	}
	id := u.catalogue("csv", "id,title\na,b\n")
	if err := u.blobs.Delete(t.Context(), catalogueKey(id)); err != nil {
		t.Fatal(err)
	}
	u.lookThrough(id)
	if known := u.client.View().Catalogue(id); known.Message != gone {
		t.Errorf("a file that is gone: %+v", known)
	}
	u.lookThrough(u.ids.New()) // an unknown one
}

// TestCatalogueIsKilledAnywhere kills the reading of a file at each of its points. The previous
// catalogue stands until the new one is complete.
func TestCatalogueIsKilledAnywhere(t *testing.T) {
	for dies := 1; ; dies++ {
		u := newUploaded(t)
		u.point = func(string) {}
		before := u.catalogue("csv", "id,title\nold,b\n")
		u.lookThrough(before)
		var file strings.Builder
		file.WriteString("id,title\n")
		for n := range 3_000 {
			fmt.Fprintf(&file, "%d,thing %d\n", n, n)
		}
		id := u.catalogue("csv", file.String())
		at, left := "", dies
		u.point = func(name string) {
			if left--; left == 0 {
				at = name
				panic(name)
			}
		}
		if !u.lookThrough(id) {
			if dies != 3 {
				t.Errorf("it died at %d points", dies-1)
			}
			return
		}
		ready := u.client.View().CatalogueIn(client.CatalogueReady)
		if want := at == "work.catalogue.after_end"; (ready.ID == id) != want ||
			(ready.ID == before) == want {
			t.Errorf("%s: %+v is ready", at, ready)
		}
		u.lookThrough(id)
		ready = u.client.View().CatalogueIn(client.CatalogueReady)
		if ready.ID != id || ready.Products != 3_000 || u.client.View().Catalogue(before) != nil {
			t.Errorf("%s: %+v is ready", at, ready)
		}
	}
}
