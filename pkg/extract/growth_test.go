package extract

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/testkit/hostile"
)

var (
	growthSeed = flag.Uint64("growth-seed", 0, "the first page of TestCostGrowsWithThePage")
	growths    = flag.Uint64("growths", 300, "its pages")
)

// TestCostGrowsWithThePage: a page with four times as many similar parts takes about four times as
// long. Superlinear growth would occupy a core for minutes on the largest pages. (Customers'
// selectors have a budget of steps instead.) As in TestEveryTypeOnHostilePages, only `make bounds`
// measures; other runs read some of the pages.
func TestCostGrowsWithThePage(t *testing.T) {
	const (
		small = 60_000 // bytes
		worth = 150 * time.Millisecond
		most  = 8 // times
	)
	measured, pages := os.Getenv("SHOAL_BOUNDS_SUITE") != "", *growths
	if !measured {
		pages = min(pages, 10)
	}
	for seed := *growthSeed; seed < *growthSeed+pages; seed++ {
		page, n := hostile.Random(seed), 1
		for len(page(n)) < small && n < small {
			n *= 2
		}
		short, long := []byte(page(n)), []byte(page(4*n))
		for name, recipe := range hostileRecipes() {
			if strings.Contains(name, "looks") {
				continue
			}
			extractor, err := Compile(recipe)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			read := func(body []byte) func() {
				return func() {
					_, _ = extractor.Extract(Page{URL: "http://a.example/",
						Asked: "http://a.example/", ContentType: "text/html", Body: body,
						At: time.Unix(1_800_000_000, 0)})
				}
			}
			if !measured {
				read(short)()
				continue
			}
			took, _ := measure(read(long))
			if took < worth {
				continue
			}
			before, _ := measure(read(short))
			if again, _ := measure(read(long)); again < took {
				took = again
			}
			if took > worth && took > most*before || took > hostileTime {
				t.Errorf("page %d, %s: %d bytes took %v, %d bytes %v: %.200q", seed, name,
					len(short), before.Round(time.Millisecond), len(long),
					took.Round(time.Millisecond), page(1))
			}
		}
	}
}
