package rows

import (
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/extract/internal/dom"
)

// TestResolve: addresses resolved without parsing are the same as with parsing.
func TestResolve(t *testing.T) {
	part := rapid.SampledFrom([]string{"/", "//", "/.", "/..", ".", "..", "a", "B", "1", "0x7f",
		"-", "--", "xn--a", "http://", "https://", "shop.test",
		"127.1", "a.b", ":80", ":", "@", "?", "#", "%2e", "%", " ", "\\", "ü", "'", "\"", "&", "=",
		"~", "|", "{", "\t"})
	pages := rapid.SampledFrom([]string{"https://shop.test/a/b?c", "http://a.shop.test/",
		"http://127.0.0.1/x", "https://shop.test:8443/", "http://localhost/"})
	rapid.Check(t, func(t *rapid.T) {
		page, cell := pages.Draw(t, "page"), ""
		for _, text := range rapid.SliceOfN(part, 1, 6).Draw(t, "parts") {
			cell += text
		}
		want := cell
		if to, err := BaseOf(page, "").Parse(cell); err == nil && IsWeb(to) {
			want = to.Href(false)
		}
		var doc dom.Document
		if err := doc.Parse(nil); err != nil {
			t.Fatal(err)
		}
		var w Writer
		w.At(page)
		if got := string(w.resolve(&doc, []byte(cell))); got != want {
			t.Fatalf("%q on %s: %q, want %q", cell, page, got, want)
		}
	})
}
