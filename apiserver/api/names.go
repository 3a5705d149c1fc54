package api

import (
	"cmp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
)

// Named is what a list of things with names asks for (decision 43).
type Named[T any] struct {
	Q, Sort string
	Name    func(T) string
	Created func(T) int64
}

// sorts of lists of names.
const (
	byName    = "name"
	byCreated = "createdAt"
)

// Of are those of a list that have the text in their names, in the order that is asked for. Names
// are ordered whatever their case. What is equal stays in the list's order. The list is the
// caller's own to change.
func (n Named[T]) Of(list []T) ([]T, error) {
	field, descending, known := ReadSort(n.Sort)
	if n.Sort != "" && (!known || field != byName && field != byCreated) {
		return nil, fault.Invalid(fault.InvalidSort, "sort",
			"must be name or createdAt, then asc or desc: name,asc")
	}
	if text := filter.Fold(n.Q); text != "" {
		list = slices.DeleteFunc(list, func(one T) bool {
			return !strings.Contains(filter.Fold(n.Name(one)), text)
		})
	}
	if n.Sort == "" {
		return list, nil
	}
	slices.SortStableFunc(list, func(a, b T) int {
		order := cmp.Compare(n.Created(a), n.Created(b))
		if field == byName {
			order = strings.Compare(filter.Fold(n.Name(a)), filter.Fold(n.Name(b)))
		}
		if descending {
			return -order
		}
		return order
	})
	return list, nil
}
