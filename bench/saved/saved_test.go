package saved

import (
	"bytes"
	"compress/gzip"
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

func TestPartsStayAsTheyAre(t *testing.T) {
	for site, want := range map[string]Half{"shoal.dev": Work} {
		if got := PartOf(site); got != want {
			t.Errorf("%s is in %s, was in %s", site, got, want)
		}
	}
}

// TestLoadUnpacks: the hash is of the packed file, and the page is its content.
func TestLoadUnpacks(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte("<p>page")); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(packed.Bytes())
	e := Source{Repository: "owner/name", Path: "a.html.gz", SHA256: hex.EncodeToString(sum[:])}
	path := filepath.Join(dir, "owner", "name", "a.html.gz")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	body, found, err := e.Load(dir)
	if err != nil || !found || string(body) != "<p>page" {
		t.Errorf("%q, %t, %v", body, found, err)
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
