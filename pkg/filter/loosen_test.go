package filter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/filter"
)

// A loose filter also passes rows whose texts hold a number where the filter compares numbers.
func TestLoosen(t *testing.T) {
	price := map[string]any{"price": "10.50 €", "n": 3., "m": "4"}
	for _, c := range []struct {
		filter string
		fields []string
		passes bool // price
	}{
		{`{}`, nil, true},
		{`{"price":{"$gt":20}}`, []string{"price"}, true},
		{`{"price":{"$between":[1,2]},"n":3}`, []string{"price"}, true},
		{`{"price":{"$lte":20},"n":4}`, []string{"price"}, false},
		{`{"$or":[{"n":{"$lt":1}},{"price":{"$gte":1},"n":{"$gt":2}}]}`, []string{"n", "price"},
			true},
		{`{"n":{"$gt":9}}`, []string{"n"}, false},
		{`{"m":{"$gt":9}}`, []string{"m"}, false},
		{`{"none":{"$gt":9}}`, []string{"none"}, false},
		{`{"price":{"$gt":"9"}}`, nil, false},
		{`{"price":10.5}`, nil, false},
		{`{"$nor":[{"price":{"$gt":9}}]}`, nil, true},
	} {
		node, err := filter.Parse([]byte(c.filter))
		if err != nil {
			t.Fatal(err)
		}
		loose, fields := filter.Loosen(node)
		if diff := cmp.Diff(c.fields, fields); diff != "" {
			t.Errorf("%s, fields (- wanted):\n%s", c.filter, diff)
		}
		if got := filter.Match(filter.NewBudget(t.Context()), loose, price); got != c.passes {
			t.Errorf("%s passes: %v", c.filter, got)
		}
	}
}
