package saved

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

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
	e := Source{Repository: "owner/name", Path: "a/b.html", SHA256: hex.EncodeToString(sum[:])}
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
