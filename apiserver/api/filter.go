package api

import (
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
)

// CheckValues refuses to compare a field with a value that it never has, because a misspelt filter
// should not silently match nothing. It accepts patterns and parts of texts.
func CheckValues(c filter.Compare, known []string) error {
	switch c.Op {
	case filter.Eq, filter.Ne, filter.In, filter.Nin:
	default:
		return nil
	}
	for _, value := range c.Values {
		if value.Kind != filter.Text || !slices.Contains(known, value.Text) {
			return fault.Invalid(fault.InvalidFilter, "filters."+c.Field, "must be one of %s",
				strings.Join(known, ", "))
		}
	}
	return nil
}
