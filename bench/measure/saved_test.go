package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/bench/saved"
)

// TestHalvesNeedTheirPages: a half is judged by 90 of its 100 pages, and not by 89. Pages of the
// other half count neither as wanted nor as found, and a page with another content is missing.
func TestHalvesNeedTheirPages(t *testing.T) {
	var entries []saved.Source
	for i, wanted := 0, 0; wanted < 100; i++ {
		body := fmt.Sprintf("page %d", i)
		sum := sha256.Sum256([]byte(body))
		entries = append(entries, saved.Source{Repository: "a/b", Path: body,
			SHA256: hex.EncodeToString(sum[:]), Site: fmt.Sprintf("%d.example", i)})
		if saved.HalfOf(entries[i].Site) == saved.Held {
			wanted++
		}
	}
	for _, test := range []struct {
		found   int
		refused bool
	}{{0, true}, {89, true}, {90, false}, {100, false}} {
		dir, found := t.TempDir(), 0
		if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			body := e.Path
			if saved.HalfOf(e.Site) == saved.Held {
				if found++; found > test.found {
					body = "another page"
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "a", "b", e.Path), []byte(body),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		said := ""
		on := &Bench{Say: func(format string, args ...any) { said += fmt.Sprintf(format, args...) }}
		pages, err := loadHalf(on, "detect", dir, saved.Held, entries,
			func(e *saved.Source) *saved.Source { return e })
		if (err != nil) != test.refused || err == nil && len(pages) != test.found {
			t.Errorf("%d found: %d pages, %v", test.found, len(pages), err)
		}
		count := fmt.Sprintf("%d of 100 pages", test.found)
		if !strings.Contains(said, count) || err != nil && !strings.Contains(err.Error(), count) {
			t.Errorf("%d found: %q, %v", test.found, said, err)
		}
	}
	if _, err := loadHalf(&Bench{Say: func(string, ...any) {}}, "detect", t.TempDir(), saved.Held,
		nil, func(e *saved.Source) *saved.Source { return e }); err == nil {
		t.Error("a half without entries is judged")
	}
}
