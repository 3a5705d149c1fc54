package filter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/pattern"
)

func number(n float64) filter.Value { return filter.Value{Kind: filter.Number, Number: n} }
func text(s string) filter.Value    { return filter.Value{Kind: filter.Text, Text: s} }
func boolean(b bool) filter.Value   { return filter.Value{Kind: filter.Bool, Bool: b} }
func comparePatterns(x, y *pattern.Pattern) bool {
	return (x == nil) == (y == nil) && (x == nil || x.String() == y.String())
}

func is(field string, op filter.Op, values ...filter.Value) filter.Compare {
	return filter.Compare{Field: field, Op: op, Values: values}
}

func TestParse(t *testing.T) {
	matched := is("a", filter.Regex, text("^x"))
	var err error
	if matched.Pattern, err = pattern.Compile("^x", filter.MaxPattern); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		in   string
		want filter.Node
	}{
		{`{}`, nil},
		{`{"a":1}`, is("a", filter.Eq, number(1))},
		{`{"a":null}`, is("a", filter.Eq, filter.Value{})},
		{`{"and":true}`, is("and", filter.Eq, boolean(true))},
		{`{"_sourceUrl":"x"}`, is("_sourceUrl", filter.Eq, text("x"))},
		{`{"a.b":{"$gt":1.5}}`, is("a.b", filter.Gt, number(1.5))},
		{`{"a":{"gte":"2026-01-01","$lt":"2026-02-01"}}`, filter.And{
			is("a", filter.Gte, text("2026-01-01")), is("a", filter.Lt, text("2026-02-01"))}},
		{`{"a":{"in":[1,"1",null,false]}}`,
			is("a", filter.In, number(1), text("1"), filter.Value{}, boolean(false))},
		{`{"a":{"nin":[]}}`, is("a", filter.Nin)},
		{`{"a":{"between":[1,2]}}`, is("a", filter.Between, number(1), number(2))},
		{`{"a":{"exists":false}}`, is("a", filter.Exists, boolean(false))},
		{`{"a":{"regex":"^x"}}`, matched},
		{`{"$or":[{"a":1},{"b":2,"c":{"contains":"x"}}]}`, filter.Or{
			is("a", filter.Eq, number(1)),
			filter.And{is("b", filter.Eq, number(2)), is("c", filter.Contains, text("x"))}}},
		{`{"$nor":[{"$and":[{"a":1}]}],"b":2}`, filter.And{
			filter.Nor{is("a", filter.Eq, number(1))}, is("b", filter.Eq, number(2))}},
	}
	for _, test := range tests {
		got, err := filter.Parse([]byte(test.in))
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff(test.want, got, cmp.Comparer(comparePatterns)); diff != "" {
			t.Errorf("%s: %s", test.in, diff)
		}
	}
}

func nested(depth int) string {
	return strings.Repeat(`{"$and":[`, depth-1) + `{"a":1}` + strings.Repeat(`]}`, depth-1)
}

func listOf(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

func TestParseRefuses(t *testing.T) {
	conditions := func(n int) string {
		return "{" + listOf(n, func(i int) string { return fmt.Sprintf(`"f%d":1`, i) }) + "}"
	}
	operands := func(n int) string {
		return `{"a":{"in":[` + listOf(n, func(int) string { return "1" }) + `]}}`
	}
	pattern := func(n int) string { return `{"a":{"regex":"` + strings.Repeat("ä", n) + `"}}` }
	part := func(op string, n int) string {
		return fmt.Sprintf(`{"a":{"%s":"%s"}}`, op, strings.Repeat("x", n))
	}
	for _, ok := range []string{nested(8), conditions(100), operands(1000), pattern(256),
		part("contains", filter.MaxPartBytes), part("eq", filter.MaxPartBytes+1)} {
		if _, err := filter.Parse([]byte(ok)); err != nil {
			t.Errorf("%.60s… at its bound: %v", ok, err)
		}
	}
	tests := []struct{ in, field string }{
		{``, "filters"}, {`null`, "filters"}, {`[]`, "filters"}, {`{"a":1} x`, "filters"},
		{`{} {}`, "filters"},
		{`{"a":`, "filters.a"}, {`{"a" 1}`, "filters.a"}, {`{"a":1,}`, "filters"},
		{`{"a":{"in":[1,]}}`, "filters.a.in[1]"}, {`{"a":1,"a":2}`, "filters.a"},
		{"{\"a\":\"\xff\"}", "filters"},
		{`{"a":[1]}`, "filters.a"}, {`{"a":{}}`, "filters.a"},
		{`{"a":{"like":1}}`, "filters.a.like"},
		{`{"a":{"$$gt":1}}`, "filters.a.$$gt"}, {`{"a":{"eq":{"x":1}}}`, "filters.a.eq"},
		{`{"a":{"gt":true}}`, "filters.a.gt"}, {`{"a":{"lte":null}}`, "filters.a.lte"},
		{`{"a":{"in":1}}`, "filters.a.in"}, {`{"a":{"in":[[1]]}}`, "filters.a.in[0]"},
		{`{"a":{"between":[1]}}`, "filters.a.between"},
		{`{"a":{"between":[1,"2"]}}`, "filters.a.between"},
		{`{"a":{"between":[null,null]}}`, "filters.a.between"},
		{`{"a":{"exists":1}}`, "filters.a.exists"},
		{`{"a":{"contains":1}}`, "filters.a.contains"},
		{`{"a":{"$regex":"("}}`, "filters.a.$regex"},
		{`{"a":1e999}`, "filters.a"}, {`{"":1}`, "filters."}, {`{"a\"b":1}`, `filters.a"b`},
		{`{"` + strings.Repeat("x", 1025) + `":1}`, "filters"},
		{`{"$not":[]}`, "filters.$not"}, {`{"$and":[]}`, "filters.$and"},
		{`{"$or":[{}]}`, "filters.$or[0]"},
		{`{"$or":{"a":1}}`, "filters.$or"}, {`{"$or":[1]}`, "filters.$or[0]"},
		{`{"$or":[{"a":1},{"b":{"gt":null}}]}`, "filters.$or[1].b.gt"},
		{nested(9), "filters" + strings.Repeat(".$and[0]", 8)},
		{conditions(101), "filters.f100"}, {operands(1001), "filters.a.in"},
		{pattern(257), "filters.a.regex"},
		{part("contains", filter.MaxPartBytes+1), "filters.a.contains"},
		{part("startsWith", filter.MaxPartBytes+1), "filters.a.startsWith"},
		{part("$endsWith", filter.MaxPartBytes+1), "filters.a.$endsWith"},
		{`{"a":"` + strings.Repeat("x", filter.MaxBytes) + `"}`, "filters"},
	}
	for _, test := range tests {
		node, err := filter.Parse([]byte(test.in))
		var coded *fault.Error
		if !errors.As(err, &coded) {
			t.Errorf("%.60s: got %v, %v, want a coded error", test.in, node, err)
			continue
		}
		if coded.Code != fault.InvalidFilter || coded.Field != test.field {
			t.Errorf("%.60s: got %s at %q, want it at %q", test.in, coded.Code, coded.Field,
				test.field)
		}
	}
}

func TestMatch(t *testing.T) {
	doc := `{"n":12.5,"t":"12.50","w":"Straße ÄÖ K","b":true,"z":null,"l":[1],"o":{"x":1},"a.b":1,"d":"2026-01-31"}`
	tests := []struct {
		filter string
		want   bool
	}{
		{`{}`, true},
		{`{"n":12.5}`, true}, {`{"n":"12.5"}`, false}, {`{"t":12.5}`, true},
		{`{"t":"12.5"}`, false},
		{`{"t":{"gt":9}}`, true}, {`{"t":{"gt":"9"}}`, false}, {`{"w":{"gt":9}}`, false},
		{`{"w":{"lte":9}}`, false},
		{`{"b":true}`, true}, {`{"b":1}`, false}, {`{"b":"true"}`, false},
		{`{"b":{"ne":false}}`, true},
		{`{"z":null}`, true}, {`{"gone":null}`, true}, {`{"z":{"exists":true}}`, true},
		{`{"gone":{"exists":true}}`, false},
		{`{"gone":{"exists":false}}`, true}, {`{"gone":{"ne":1}}`, true},
		{`{"gone":{"ne":null}}`, false},
		{`{"z":{"ne":null}}`, false}, {`{"n":{"ne":null}}`, true}, {`{"gone":{"lt":1}}`, false},
		{`{"gone":{"in":[1,null]}}`, true}, {`{"gone":{"nin":[1]}}`, true},
		{`{"n":{"in":[]}}`, false},
		{`{"n":{"nin":[]}}`, true}, {`{"t":{"in":["x",12.5]}}`, true},
		{`{"l":{"eq":1}}`, false}, {`{"l":{"exists":true}}`, true},
		{`{"o":{"contains":"x"}}`, false},
		{`{"a.b":1}`, true}, {`{"o.x":1}`, false},
		{`{"w":{"contains":"äö"}}`, true}, {`{"w":{"contains":"strasse"}}`, false},
		{`{"w":{"startsWith":"STRAẞE"}}`, true},
		{`{"w":{"endsWith":"k"}}`, true}, {`{"n":{"contains":"1"}}`, false},
		{`{"w":{"contains":""}}`, true},
		{`{"w":{"regex":"^Str.+K$"}}`, true}, {`{"w":{"regex":"str"}}`, false},
		{`{"w":{"regex":"(?i)str"}}`, true},
		{`{"n":{"between":[12.5,13]}}`, true}, {`{"t":{"between":[12,12.5]}}`, true},
		{`{"n":{"between":[13,12]}}`, false},
		{`{"d":{"between":["2026-01-01","2026-01-31"]}}`, true},
		{`{"n":{"between":["1","2"]}}`, false},
		{`{"$nor":[{"gone":{"gt":1}},{"n":1}]}`, true}, {`{"$or":[{"n":1},{"b":true}]}`, true},
		{`{"$and":[{"n":12.5},{"b":false}]}`, false},
	}
	var decoded map[string]any
	if err := json.Unmarshal([]byte(doc), &decoded); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		node, err := filter.Parse([]byte(test.filter))
		if err != nil {
			t.Fatalf("%s: %v", test.filter, err)
		}
		if got := filter.Match(paid(t), node, decoded); got != test.want {
			t.Errorf("%s: got %v", test.filter, got)
		}
	}
}

func paid(t *testing.T) *pattern.Budget {
	return filter.NewBudget(t.Context())
}

// Patterns are paid wherever they stand in a filter, until the budget is exhausted.
func TestPatternsOfAFilterArePaid(t *testing.T) {
	compare := `{"a":{"regex":"` + strings.Repeat("a{0,999}", 3) + `z"}}`
	doc := map[string]any{"a": strings.Repeat("b", 6_000)}
	for _, text := range []string{compare, `{"$and":[` + compare + `]}`, `{"$or":[` + compare + `]}`,
		`{"$nor":[` + compare + `]}`} {
		node, err := filter.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		budget := pattern.NewBudget(t.Context(), 10_000_000)
		for n := 0; filter.ErrOf(budget) == nil; n++ {
			if filter.Match(budget, node, doc); n > 10 {
				t.Fatalf("%.10s: %d steps are left", text, budget.Left())
			}
		}
		if err := filter.ErrOf(budget); fault.CodeOf(err) != fault.InvalidFilter {
			t.Errorf("%.10s: %v", text, err)
		}
	}
}

func TestParseNumber(t *testing.T) {
	for _, ok := range []string{"0", "007", "-1", "+1", "1.50", "1e3", "1E-3", "2.5e+10", "-0"} {
		if _, is := filter.ParseNumber(ok); !is {
			t.Errorf("%q is a number", ok)
		}
	}
	for _, no := range []string{"", "+", ".5", "5.", "1,5", " 1", "1 ", "0x10", "1_000", "inf",
		"NaN", "1e", "1e+", "1e999",
		"１", "1-"} {
		if n, is := filter.ParseNumber(no); is {
			t.Errorf("%q is no number, got %v", no, n)
		}
	}
}

// TestNumbersAreExact: a number has each bit that strconv gives it, however it was parsed.
func TestNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[+-]?[0-9]{1,18}(\.[0-9]{1,18})?(e-?[0-9]{1,2})?`).
			Draw(t, "text")
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		n, is := filter.ParseNumber(text)
		if !is || math.Float64bits(n) != math.Float64bits(want) {
			t.Fatalf("%q: %v, %v, want %v", text, n, is, want)
		}
	})
}

// TestFoldIsRE2Folding: folding equals what a store gets that only has RE2 for it.
func TestFoldIsRE2Folding(t *testing.T) {
	alphabet := []rune("aAkKK sSſßẞiIİıäÄσςΣ中é0.")
	rapid.Check(t, func(t *rapid.T) {
		haystack := string(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 8).Draw(t, "haystack"))
		needle := string(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 3).Draw(t, "needle"))
		want := regexp.MustCompile("(?is)" + regexp.QuoteMeta(needle)).MatchString(haystack)
		if got := strings.Contains(filter.Fold(haystack), filter.Fold(needle)); got != want {
			t.Fatalf("%q in %q: got %v", needle, haystack, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `{"a":{"$in":[1,"x",null,true]}}`,
		`{"$or":[{"a":{"regex":"^x"}},{"b":null}]}`,
		`{"a":{"between":["a","b"],"exists":true}}`, `{"$nor":[{"$and":[{"a":{"contains":"Ä"}}]}]}`,
		`[`, `{"a":{"gt":{}}}`} {
		f.Add([]byte(seed))
	}
	doc := map[string]any{"a": "x", "b": json.Number("1"), "c": true, "d": nil, "e": []any{}}
	f.Fuzz(func(t *testing.T, data []byte) {
		node, err := filter.Parse(data)
		if err != nil {
			var coded *fault.Error
			if !errors.As(err, &coded) || coded.Code != fault.InvalidFilter || coded.Field == "" {
				t.Fatalf("not a coded error with a field: %v", err)
			}
			return
		}
		if node != nil && filter.Match(paid(t), node, doc) ==
			filter.Match(paid(t), filter.Nor{node}, doc) {
			t.Fatal("a filter and its negation agree")
		}
	})
}

// TestPatternSize: short patterns that would compile to very much are refused beforehand.
func TestPatternSize(t *testing.T) {
	for pattern, ok := range map[string]bool{
		`^[a-z]{1,63}(\.[a-z]{1,63}){1,8}$`: true, `\pL+`: true, `(?i)[äöü]{100}`: true,
		`x{1000}`: true, `x{0}`: true,
		`(x{100}){10}`: true, `\pL{1000}`: false, `((x{100}){10}|(y{100}){10}){1000}`: false,
		`(?i)(\pL\pN){50}`:            false,
		strings.Repeat(`\pL{1,}`, 36): false,
	} {
		node, err := filter.Parse([]byte(fmt.Sprintf(`{"a":{"regex":%q}}`, pattern)))
		if (err == nil) != ok {
			t.Errorf("%s: %v, %v", pattern, node, err)
		}
	}
}

// TestEach visits all comparisons in order, and stops at the first error.
func TestEach(t *testing.T) {
	node := filter.And{is("a", filter.Exists, boolean(true)), filter.Nor{
		is("b", filter.Eq, text("x")), filter.Or{is("c", filter.Eq, number(1))}}}
	for stop, want := range map[string]string{"": "abc", "a": "a", "b": "ab", "c": "abc"} {
		var seen strings.Builder
		failed := errors.New("stop")
		err := filter.Each(node, func(c filter.Compare) error {
			if seen.WriteString(c.Field); c.Field == stop {
				return failed
			}
			return nil
		})
		if seen.String() != want || errors.Is(err, failed) == (stop == "") {
			t.Errorf("stopped at %q: %q, %v", stop, seen.String(), err)
		}
	}
	err := filter.Each(nil, func(filter.Compare) error { return errors.New("there is none") })
	if err != nil {
		t.Error(err)
	}
}
