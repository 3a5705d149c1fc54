package clickhouse

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// linkSettings make the server parse numbers in text as Go does, to the last bit.
const linkSettings = `precise_float_parsing = 1`

// printLinkFilter writes a filter as a condition on the links of a site.
func (s *Store) printLinkFilter(site ids.ID, f filter.Node) string {
	p := printer{column: linkColumn, listed: func(c filter.Compare) (string, bool) {
		if c.Field != "state" {
			return "", false
		}
		return s.printState(site, c), true
	}}
	p.node(f)
	return p.String()
}

// linkColumn is column for links. Links have only text, which may also be a number.
func linkColumn(field, part string) string {
	has := field == "url" || field == "title" || field == "curl"
	switch {
	case part == "text" && has:
		return field
	case part == "text":
		return `''`
	case !has:
		return `0`
	}
	number := `toFloat64OrNull(` + field + `)`
	is := `match(` + field + `, '\\A[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?\\z') AND ` +
		`ifNull(isFinite(` + number + `), 0)`
	if part == "num" {
		return `if(` + is + `, assumeNotNull(` + number + `) + 0, 0)` // make -0 a 0
	}
	return fmt.Sprintf(`if(%s, %d, %d)`, is, kindNumericText, kindText)
}

// printState writes a comparison with the state of a link, as a test for some states. A link
// without a noted state is pending.
func (s *Store) printState(site ids.ID, c filter.Compare) string {
	var passing, others []rowstore.LinkState
	budget := filter.NewBudget(context.Background()) // for a few short words
	for state := range rowstore.LinkErrored + 1 {
		if filter.Match(budget, c, map[string]any{"state": state.String()}) {
			passing = append(passing, state)
		} else {
			others = append(others, state)
		}
	}
	in, states := `IN`, passing
	if len(passing) > 0 && passing[0] == rowstore.LinkPending {
		in, states = `NOT IN`, others
	}
	if len(states) == 0 {
		return map[string]string{`IN`: `0`, `NOT IN`: `1`}[in]
	}
	return fmt.Sprintf(`hash %s (SELECT hash FROM %s FINAL WHERE site = %s AND state IN (%s))`, in,
		s.table("linkstates"), id(site),
		join(states, func(state rowstore.LinkState) string { return fmt.Sprint(uint8(state)) }))
}
