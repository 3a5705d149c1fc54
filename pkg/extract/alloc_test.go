package extract

import (
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// TestNoAllocationPerTag reads pages of different lengths to their ends and checks that only the
// row allocates.
func TestNoAllocationPerTag(t *testing.T) {
	e := mustCompile(t, recipe(model.SingleProduct, "title TEXT h1",
		"last TEXT section:nth-child(2) > p", "gone TEXT .x"))
	allocations := func(cards int) float64 {
		page := Page{ContentType: "text/html", Body: []byte("<!doctype html><div><h1 class=t>a " +
			"&amp; b</h1>" +
			strings.Repeat(`<div class="card"><a href="/p" title="x"><img src=i.jpg><b>name &lt;</b></a><span class=price>1</span></div>`, cards) +
			"</div><section><p>end</section>")}
		return testing.AllocsPerRun(50, func() {
			if got, err := e.Extract(page); err != nil ||
				string(got.Rows[0]) != `{"title":"a & b","last":"end","gone":null}` {
				t.Fatalf("%s, %v", got.Rows, err)
			}
		})
	}
	if few, many := allocations(10), allocations(2_000); many > few+2 {
		t.Errorf("%g allocations on a page of 50 elements, %g on one of 10,000", few, many)
	}
}
