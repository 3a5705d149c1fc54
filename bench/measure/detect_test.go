package measure

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/bench/detect"
	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// TestDetectPage: the first proposal for a plain list of products is right, with its next page.
// Against another answer to the same page it is not.
func TestDetectPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(`<html><head><title>Chairs</title></head><body><h1>Chairs</h1><ul>`)
	for i := range 12 {
		fmt.Fprintf(&page, `<li class="card"><a href="/chair/%d"><h2>Chair number %d</h2></a>`+
			`<p class="price">€ %d.50</p></li>`, i, i, 10+i)
	}
	page.WriteString(`</ul><a rel="next" href="/chairs?page=2">Next</a></body></html>`)
	chair := func(i int) detect.Item {
		return detect.Item{Title: fmt.Sprintf("Chair number %d", i),
			Link:  fmt.Sprintf("https://shop.example/chair/%d", i),
			Price: fmt.Sprintf("%d.50", 10+i)}
	}
	entry := detect.Entry{Source: saved.Source{Address: "https://shop.example/chairs"},
		Answer: detect.Answer{Count: 12, Items: []detect.Item{chair(0), chair(1), chair(11)},
			Next: "https://shop.example/chairs?page=2"}}
	detector, err := extract.Compile(model.Recipe{Type: model.Detection})
	if err != nil {
		t.Fatal(err)
	}
	got := detectPage(detector, &entry, []byte(page.String()))
	if got.first.Verdict != detect.Right || got.best != detect.Right || !got.next {
		t.Errorf("%+v", got)
	}
	entry.Items = []detect.Item{{Title: "Table"}, {Title: "Desk"}, {Title: "Shelf"}}
	entry.Next = ""
	got = detectPage(detector, &entry, []byte(page.String()))
	if got.first.Verdict != detect.Another || got.next {
		t.Errorf("of another list: %+v", got)
	}
	if got := detectPage(detector, &entry, nil); got.first.Verdict != detect.None {
		t.Errorf("of an empty page: %+v", got)
	}
}
