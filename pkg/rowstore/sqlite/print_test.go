package sqlite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// TestPrintFilter checks the SQL of every operator, and its arguments.
func TestPrintFilter(t *testing.T) {
	const a = "a"
	tests := []struct {
		filter string
		want   string
		args   []any
	}{
		{`{}`, `TRUE`, nil},
		{`{"a":1}`, `(number(doc, ?) = ? IS TRUE OR FALSE)`, []any{a, 1.0}},
		{`{"a":"x\""}`, `(equals(doc, ?, ?) OR FALSE)`, []any{a, `x"`}},
		{`{"a":null}`, `(literal(doc, ?) = ? IS TRUE OR FALSE)`, []any{a, "null"}},
		{`{"a":{"ne":true}}`, `NOT (literal(doc, ?) = ? IS TRUE OR FALSE)`, []any{a, "true"}},
		{`{"a":{"in":[1.5,"x",1e21,null,false]}}`,
			`(number(doc, ?) IN (SELECT parsed(value) FROM json_each(?)) IS TRUE OR equals(doc, ?, ?) OR ` +
				`literal(doc, ?) IN (SELECT value FROM json_each(?)) IS TRUE OR FALSE)`,
			[]any{a, `["1.5","1e+21"]`, a, "x", a, `["null","false"]`}},
		{`{"a":{"nin":[]}}`, `NOT (FALSE)`, nil},
		{`{"a":{"gt":1}}`, `(number(doc, ?) > ? IS TRUE)`, []any{a, 1.0}},
		{`{"a":{"lte":"x"}}`, `(text(doc, ?) <= ? IS TRUE)`, []any{a, "x"}},
		{`{"a.b":{"between":[1,2]}}`,
			`((number(doc, ?) >= ? IS TRUE) AND (number(doc, ?) <= ? IS TRUE))`,
			[]any{`a.b`, 1.0, `a.b`, 2.0}},
		{`{"a":{"exists":true}}`, `present(doc, ?)`, []any{a}},
		{`{"a":{"exists":false}}`, `NOT present(doc, ?)`, []any{a}},
		{`{"a":{"contains":"ÄK"}}`, `contains(doc, ?, ?)`, []any{a, "Äk"}},
		{`{"a":{"startsWith":"x"}}`, `starts_with(doc, ?, ?)`, []any{a, "x"}},
		{`{"a":{"endsWith":"x"}}`, `ends_with(doc, ?, ?)`, []any{a, "x"}},
		{`{"a":{"regex":"^x"}}`, `matches(doc, ?, ?)`, []any{a, int64(1)}},
		{`{"$or":[{"a":{"gt":1}},{"a":{"exists":true}}],"$nor":[{"a":{"lt":0}}]}`,
			`(((number(doc, ?) > ? IS TRUE) OR present(doc, ?)) AND NOT ((number(doc, ?) < ? IS TRUE)))`,
			[]any{a, 1.0, a, a, 0.0}},
	}
	for _, test := range tests {
		node, err := filter.Parse([]byte(test.filter))
		if err != nil {
			t.Fatalf("%s: %v", test.filter, err)
		}
		condition, args := printFilter(node, newPatterns().beginQuery(t.Context()))
		if diff := cmp.Diff(test.want, condition); diff != "" {
			t.Errorf("%s: %s", test.filter, diff)
		}
		if diff := cmp.Diff(test.args, args); diff != "" {
			t.Errorf("%s: arguments: %s", test.filter, diff)
		}
	}
}

func TestPrintSort(t *testing.T) {
	terms, args := printSort([]rowstore.Sort{{Field: "a"}, {Field: "b c", Descending: true}})
	class := `CASE typeof(sort_key(doc, ?)) WHEN 'real' THEN 0 WHEN 'text' THEN 1 WHEN 'integer' THEN 2 WHEN 'blob' THEN 3 ELSE 4 END`
	want := class + `, sort_key(doc, ?), ` + class + `, sort_key(doc, ?) DESC, place`
	if diff := cmp.Diff(want, terms); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{"a", "a", "b c", "b c"}, args); diff != "" {
		t.Error(diff)
	}
}

func TestScopeJobs(t *testing.T) {
	group, one, two := ids.ID{1}, ids.ID{11: 1}, ids.ID{11: 2}
	text, args := scopeJobs(rowstore.Scope{Group: group, Scraper: one, Jobs: []ids.ID{one, two},
		Without: []ids.ID{two}})
	want := `SELECT id, rows FROM jobs WHERE grp = ? AND scraper = ? AND job IN (SELECT unhex(value) FROM json_each(?))` +
		` AND job NOT IN (SELECT unhex(value) FROM json_each(?))`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{group[:], one[:],
		`["000000000000000000000001","000000000000000000000002"]`,
		`["000000000000000000000002"]`}, args); diff != "" {
		t.Error(diff)
	}
	if _, args := scopeJobs(rowstore.Scope{Group: group, Jobs: []ids.ID{}}); len(args) != 2 ||
		args[1] != "[]" {
		t.Errorf("no jobs at all: %v", args)
	}
}
