package filter

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
)

// querySteps are 25 s at worst, or a hundred megabytes of text with usual patterns.
const querySteps = 500_000_000

// NewBudget returns the budget of one query's patterns. It ends with the context at the latest.
func NewBudget(ctx context.Context) *pattern.Budget { return pattern.NewBudget(ctx, querySteps) }

// linksSteps let a usual pattern look at a million links, in the 90 bytes or so of each. They are
// seconds then. A minute is the most, since the context of a call ends then.
const linksSteps = 4 * querySteps

// NewLinksBudget is NewBudget for a search among all links of a site.
func NewLinksBudget(ctx context.Context) *pattern.Budget {
	return pattern.NewBudget(ctx, linksSteps)
}

// ErrOf returns why what was matched with a budget does not count; nil: it does.
func ErrOf(b *pattern.Budget) error {
	if errors.Is(b.Err(), pattern.ErrExhausted) {
		return fault.Invalid(fault.InvalidFilter, "filters",
			"its patterns take too long on what they search")
	}
	return b.Err()
}

// Match reports whether a document passes a filter: it defines the meaning of filters. Values are
// as encoding/json decodes them into any, numbers as json.Number or float64. The budget pays for
// the patterns. If it ends first, the result is meaningless; see ErrOf.
func Match(b *pattern.Budget, n Node, doc map[string]any) bool {
	passes := func(n Node) bool { return Match(b, n, doc) }
	switch n := n.(type) {
	case nil:
		return true
	case And:
		return !slices.ContainsFunc(n, func(n Node) bool { return !Match(b, n, doc) })
	case Or:
		return slices.ContainsFunc(n, passes)
	case Nor:
		return !slices.ContainsFunc(n, passes)
	case Compare:
		value, present := doc[n.Field]
		if n.Op == Exists {
			return present == n.Values[0].Bool
		}
		return n.match(b, value)
	}
	panic("filter: a node that is none of the four")
}

func (c Compare) match(b *pattern.Budget, value any) bool {
	equals := func(operand Value) bool { return operand.equals(value) }
	switch c.Op {
	case Eq, In:
		return slices.ContainsFunc(c.Values, equals)
	case Ne, Nin:
		return !slices.ContainsFunc(c.Values, equals)
	case Gt:
		order, ok := c.Values[0].compare(value)
		return ok && order > 0
	case Gte:
		order, ok := c.Values[0].compare(value)
		return ok && order >= 0
	case Lt:
		order, ok := c.Values[0].compare(value)
		return ok && order < 0
	case Lte:
		order, ok := c.Values[0].compare(value)
		return ok && order <= 0
	case Between:
		low, ok := c.Values[0].compare(value)
		high, _ := c.Values[1].compare(value)
		return ok && low >= 0 && high <= 0
	}
	text, ok := value.(string)
	return ok && c.matchText(b, text)
}

func (c Compare) matchText(b *pattern.Budget, text string) bool {
	switch c.Op {
	case Contains:
		return strings.Contains(Fold(text), Fold(c.Values[0].Text))
	case StartsWith:
		return strings.HasPrefix(Fold(text), Fold(c.Values[0].Text))
	case EndsWith:
		return strings.HasSuffix(Fold(text), Fold(c.Values[0].Text))
	case Regex:
		return c.Pattern.Match(b, text)
	}
	panic("filter: unknown operator " + string(c.Op))
}

func (v Value) equals(value any) bool {
	switch v.Kind {
	case Null:
		return value == nil
	case Bool:
		b, ok := value.(bool)
		return ok && b == v.Bool
	}
	order, ok := v.compare(value)
	return ok && order == 0
}

// compare compares a document's value with the operand, a number or text: less (-1), equal (0),
// greater (1).
func (v Value) compare(value any) (order int, ok bool) {
	if v.Kind == Text {
		text, ok := value.(string)
		return strings.Compare(text, v.Text), ok
	}
	number, ok := numberOf(value)
	switch {
	case number < v.Number:
		return -1, ok
	case number > v.Number:
		return 1, ok
	}
	return 0, ok
}

func numberOf(value any) (float64, bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case json.Number:
		return ParseNumber(value.String())
	case string:
		return ParseNumber(value)
	}
	return 0, false
}
