package api

import (
	"cmp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// Named filters and sorts a list of named things (decision 43).
type Named[T any] struct {
	Q, Sort  string
	From, To Time // created from From on and before To; 0: unbounded
	Name     func(T) string
	Created  func(T) int64
}

// Sort keys of lists of names.
const (
	byName    = "name"
	byCreated = "createdAt"
)

// ReadNameSort reads the sort of a list of named things: by name or by creation. It accepts "" as
// no sort.
func ReadNameSort(text string) (name, descending bool, err error) {
	field, descending, known := ReadSort(text)
	if text != "" && (!known || field != byName && field != byCreated) {
		return false, false, fault.Invalid(fault.InvalidSort, "sort",
			"must be name or createdAt, then asc or desc: name,asc")
	}
	return field == byName, descending, nil
}

// Of returns the items whose names contain Q and that were created in the span, sorted as asked.
// Names sort without regard to case. The sort is stable. It modifies list.
func (n Named[T]) Of(list []T) ([]T, error) {
	ofName, descending, err := ReadNameSort(n.Sort)
	if err != nil {
		return nil, err
	}
	if text := filter.Fold(n.Q); text != "" {
		list = slices.DeleteFunc(list, func(one T) bool {
			return !strings.Contains(filter.Fold(n.Name(one)), text)
		})
	}
	if span := Span(n.From, n.To); span != (rowstore.PastSpan{}) {
		list = slices.DeleteFunc(list, func(one T) bool { return !span.Has(n.Created(one)) })
	}
	if n.Sort == "" {
		return list, nil
	}
	slices.SortStableFunc(list, func(a, b T) int {
		order := cmp.Compare(n.Created(a), n.Created(b))
		if ofName {
			order = strings.Compare(filter.Fold(n.Name(a)), filter.Fold(n.Name(b)))
		}
		if descending {
			return -order
		}
		return order
	})
	return list, nil
}
