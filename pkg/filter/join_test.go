package filter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
)

func TestJoin(t *testing.T) {
	a, b, c := is("a", filter.Eq, number(1)), is("b", filter.Eq, number(2)),
		is("c", filter.Eq, number(3))
	for _, test := range []struct {
		name  string
		anyOf []filter.Node
		also  filter.Node
		want  filter.Node
	}{
		{"nothing", nil, nil, nil},
		{"a filter alone", nil, a, a},
		{"one category", []filter.Node{a}, nil, filter.Or{a}},
		{"two", []filter.Node{a, b}, nil, filter.Or{a, b}},
		{"two and a filter", []filter.Node{a, b}, c, filter.And{filter.Or{a, b}, c}},
		{"one that lets all pass", []filter.Node{a, nil, b}, c, c},
		{"one that lets all pass, alone", []filter.Node{nil}, nil, nil},
	} {
		got, err := filter.Join(test.anyOf, test.also)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", test.name, err, diff)
		}
	}
}

// TestJoinIsBounded: joined filters share limits: on conditions and groups, and on patterns.
func TestJoinIsBounded(t *testing.T) {
	parse := func(text string) filter.Node {
		node, err := filter.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	branches := make([]string, filter.MaxNodes-1)
	for i := range branches {
		branches[i] = fmt.Sprintf(`{"v":%d}`, i)
	}
	full := parse(`{"$or":[` + strings.Join(branches, ",") + `]}`)
	last := parse(`{"$or":[` + strings.Join(branches[1:], ",") + `]}`)
	if _, err := filter.Join([]filter.Node{full, full, full, last}, nil); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	for name, join := range map[string]func() (filter.Node, error){
		"conditions": func() (filter.Node, error) {
			return filter.Join([]filter.Node{full, full, full, full}, nil)
		},
		"patterns": func() (filter.Node, error) {
			var many []string
			for i := range 20 {
				many = append(many, fmt.Sprintf(`"v%d":{"regex":"a{1000}"}`, i))
			}
			large := parse("{" + strings.Join(many, ",") + "}")
			return filter.Join([]filter.Node{large, large}, large)
		},
	} {
		_, err := join()
		var coded *fault.Error
		if !errors.As(err, &coded) || coded.Code != fault.InvalidFilter ||
			coded.Field != "filters" {
			t.Errorf("%s beyond the bound: %v", name, err)
		}
	}
}
