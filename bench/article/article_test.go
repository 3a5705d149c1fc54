package article

import (
	"net/url"
	"testing"
	"time"

	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/address"
)

// TestTheCorpusHolds: every article can be located and judged, and no site has two.
func TestTheCorpusHolds(t *testing.T) {
	entries, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	halves, seen := map[saved.Half]int{}, map[string]bool{}
	for _, e := range entries {
		parsed, err := url.Parse(e.Address)
		_, undated := time.Parse(time.DateOnly, e.Date)
		switch {
		case err != nil || address.RegistrableDomain(parsed.Hostname()) != e.Site:
			t.Errorf("%s: site %s of %s", e.Path, e.Site, e.Address)
		case seen[e.Site]:
			t.Errorf("%s: the second one of %s", e.Path, e.Site)
		case len(e.SHA256) != 64 || len(e.Commit) != 40 || e.Title == "" ||
			e.Date != "" && undated != nil ||
			len(e.With) == 0 || len(e.Without) == 0:
			t.Errorf("%s: incomplete", e.Path)
		}
		seen[e.Site] = true
		halves[saved.HalfOf(e.Site)]++
	}
	t.Logf("%d articles: %v", len(entries), halves)
	if halves[saved.Tune] < 60 || halves[saved.Held] < 60 {
		t.Errorf("halves %v", halves)
	}
}

// TestFurtherArticlesAreOfOtherSites: none is held, nor from a site of the corpus.
func TestFurtherArticlesAreOfOtherSites(t *testing.T) {
	entries, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.Site] = true
	}
	for _, part := range []saved.Half{saved.Work, saved.Check} {
		entries, err := Further(part)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			parsed, err := url.Parse(e.Address)
			_, undated := time.Parse(time.DateOnly, e.Date)
			if err != nil || address.RegistrableDomain(parsed.Hostname()) != e.Site ||
				saved.HalfOf(e.Site) != saved.Tune || seen[e.Site] {
				t.Errorf("%s: site %s of %s", e.Path, e.Site, e.Address)
			}
			if len(e.SHA256) != 64 || len(e.Commit) != 40 || e.Title == "" || undated != nil ||
				len(e.With) == 0 {
				t.Errorf("%s: incomplete", e.Path)
			}
		}
		t.Logf("%s: %d articles", part, len(entries))
	}
}

func TestJudge(t *testing.T) {
	answer := Answer{Title: "The bridge opens", Authors: []string{"Ann Lee", "Bo Ek"},
		Date: "2026-03-01", With: []string{"On Monday", "the mayor", "until night"},
		Without: []string{"Read on", "Sign up", "Imprint"}}
	const text = `"articleBody":"On  Monday the mayor\n danced until night."`
	for row, want := range map[string]Judgement{
		`{"title":"The bridge opens!","author":"Ann Lee","datePublished":"2026-03-01",` + text +
			`}`: {true, true, true, true},
		`{"title":"News: the bridge opens","author":"Ann Lee, Bo Ek",` +
			`"datePublished":"2026-02-28",` + text + `}`: {true, true, true, true},
		`{"title":"The bridge opens","author":"Ann Lee and Bo Ek",` +
			`"datePublished":"2026-03-01",` + text + `}`: {true, true, true, true},
		`{"title":"The Daily Wire","author":"Lee Ann","datePublished":"2026-02-27",` +
			`"articleBody":"the mayor"}`: {},
		`{"title":"The bridge opens | The Daily Wire","author":"by Ann Lee","articleBody":` +
			`"On Monday the mayor danced until night. Sign up. Imprint"}`: {},
		`{"articleBody":"On Monday the mayor danced until night. Sign up."}`: {Text: true},
		`[]`: {},
	} {
		if got := answer.Judge([]byte(row)); got != want {
			t.Errorf("%s: %+v, want %+v", row, got, want)
		}
	}
	answer.Authors = nil
	if got := answer.Judge([]byte(`{"author":"Somebody"}`)); !got.Author {
		t.Error("an author is judged that the page does not name")
	}
}
