package detect

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"shoal.dev/shoal/pkg/address"
)

// TestTheCorpusHolds: every entry can be found and judged, and the halves are the sites' own.
func TestTheCorpusHolds(t *testing.T) {
	entries, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	halves, seen := map[Half]int{}, map[string]bool{}
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
		halves[HalfOf(e.Site)]++
	}
	t.Logf("%d pages: %v", len(entries), halves)
	if halves[Tune] == 0 || halves[Held] == 0 {
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

// TestHalvesStayAsTheyAre: the split was fixed before the first run.
func TestHalvesStayAsTheyAre(t *testing.T) {
	for site, want := range map[string]Half{"example.com": Held, "shoal.dev": Tune} {
		if got := HalfOf(site); got != want {
			t.Errorf("%s is in %s, was in %s", site, got, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	body := []byte("<p>page")
	sum := sha256.Sum256(body)
	e := Entry{Repository: "owner/name", Path: "a/b.html", SHA256: hex.EncodeToString(sum[:])}
	if _, found, err := e.Load(dir); found || err != nil {
		t.Errorf("absent: %t, %v", found, err)
	}
	path := filepath.Join(dir, "owner", "name", "a", "b.html")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]bool{"<p>page": true, "<p>newer": false} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found, err := e.Load(dir); found != want || err != nil {
			t.Errorf("%s: %t, %v", content, found, err)
		}
	}
}
