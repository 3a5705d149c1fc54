// Package shoptest owns what the plugins' tests share: pages as the shop systems' themes make them.
// The tests compare a page's rows with the truth in its comment and with golden rows.
package shoptest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
)

// leastPages counts one page for each known shop system, and one for none.
const leastPages = 7

var truths = regexp.MustCompile(`<!-- truth (.*) -->`)

// Pages reads each page of testdata. Its rows must contain the truth in the page's comment, which
// is one row or an array of rows. The complete rows must equal the golden file beside the page,
// which update rewrites.
func Pages(t *testing.T, plugin shop.Plugin, update bool) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join("testdata", "*.html"))
	if err != nil || len(pages) < leastPages {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, path := range pages {
		t.Run(filepath.Base(path), func(t *testing.T) {
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found, err := read(plugin, body)
			if err != nil {
				t.Fatal(err)
			}
			hold(t, found, body)
			golden(t, strings.TrimSuffix(path, ".html")+".golden",
				append(bytes.Join(found, []byte("\n")), '\n'), update)
		})
	}
}

func read(plugin shop.Plugin, body []byte) ([][]byte, error) {
	var out rows.Writer
	_, err := plugin.Maker().Read([]page.Page{{URL: "https://shop.test/some/page?x=1",
		ContentType: "text/html", Body: body}}, &out)
	return out.Rows(), err
}

// hold compares rows with the truth in the page's comment.
func hold(t *testing.T, found [][]byte, body []byte) {
	t.Helper()
	var want []map[string]any
	if truth := truths.FindSubmatch(body); truth != nil {
		text := truth[1]
		if text[0] != '[' {
			text = []byte("[" + string(text) + "]")
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) != len(want) {
		t.Fatalf("%d rows, want %d: %s", len(found), len(want), bytes.Join(found, []byte("\n")))
	}
	for i, row := range found {
		var got map[string]any
		if err := json.Unmarshal(row, &got); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		for name, value := range want[i] {
			if !reflect.DeepEqual(got[name], value) {
				t.Errorf("row %d: %s is %v, want %v", i, name, got[name], value)
			}
		}
	}
}

func golden(t *testing.T, path string, got []byte, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Fuzz checks that the rows of any page are JSON objects with a title.
func Fuzz(f *testing.F, plugin shop.Plugin) {
	f.Helper()
	pages, err := filepath.Glob(filepath.Join("testdata", "*.html"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range pages {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<16 || bytes.Count(body, []byte("<")) > 2_000 {
			return
		}
		found, err := read(plugin, body)
		if err != nil {
			return // nested too deep
		}
		for _, row := range found {
			var got map[string]any
			if err := json.Unmarshal(row, &got); err != nil || got["title"] == nil {
				t.Errorf("%q gives %q: %v", body, row, err)
			}
		}
	})
}
