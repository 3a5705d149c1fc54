package detect

import (
	"net/url"
	"testing"

	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/address"
)

// TestTheCorpusHolds: every entry can be located and judged, and each site is in its half.
func TestTheCorpusHolds(t *testing.T) {
	entries, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	halves, seen := map[saved.Half]int{}, map[string]bool{}
	for _, e := range entries {
		at := e.Repository + "/" + e.Path
		parsed, err := url.Parse(e.Address)
		switch {
		case err != nil || parsed.Host == "":
			t.Errorf("%s: address %q", at, e.Address)
		case address.RegistrableDomain(parsed.Hostname()) != e.Site:
			t.Errorf("%s: site %s of %s", at, e.Site, e.Address)
		case seen[e.SHA256]:
			t.Errorf("%s: twice in the corpus", at)
		case len(e.SHA256) != 64 || len(e.Commit) != 40 || e.Kind == "" || len(e.Language) != 2:
			t.Errorf("%s: incomplete", at)
		case e.Count == 1 || e.Count == 0 && len(e.Items) != 1 || len(e.Items) != min(e.Count, 3) &&
			e.Count > 0:
			t.Errorf("%s: %d items of %d", at, len(e.Items), e.Count)
		}
		for _, item := range e.Items {
			if normal(item.Title) == "" {
				t.Errorf("%s: an item without a title", at)
			}
		}
		seen[e.SHA256] = true
		halves[saved.HalfOf(e.Site)]++
	}
	t.Logf("%d pages: %v", len(entries), halves)
	if halves[saved.Tune] == 0 || halves[saved.Held] == 0 {
		t.Errorf("halves %v", halves)
	}
}

// TestTheSecondReadingAgrees prints how far two readings of the same pages agree.
func TestTheSecondReadingAgrees(t *testing.T) {
	first, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Second()
	if err != nil {
		t.Fatal(err)
	}
	got := Agree(first, again)
	t.Logf("%d pages read twice: a list or none %d, items %d, next page %d", got.Pages, got.Lists,
		got.Items, got.Next)
	if got.Pages != len(again) {
		t.Errorf("%d of %d second answers are to pages of the corpus", got.Pages, len(again))
	}
}
