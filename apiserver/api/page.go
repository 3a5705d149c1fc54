package api

import "shoal.dev/shoal/pkg/fault"

// Bounds of page envelopes (decision 19).
const (
	MaxListSize = 200
	MaxReach    = 100_000 // rows that page and size may pass over
)

// Page is envelope A of the specification: content and where it stands in the whole.
type Page[T any] struct {
	Content       []T   `json:"content"`
	TotalElements int64 `json:"totalElements"`
	TotalPages    int64 `json:"totalPages"`
	Size          int   `json:"size"`
	Number        int   `json:"number" doc:"Zero-based index of this page"`
}

// NewPage makes the envelope of one page; a nil content becomes an empty one.
func NewPage[T any](content []T, total int64, number, size int) Page[T] {
	if content == nil {
		content = []T{}
	}
	return Page[T]{Content: content, TotalElements: total, TotalPages: Pages(total, size), Size: size, Number: number}
}

// Pages is how many pages a total fills.
func Pages(total int64, size int) int64 { return (total + int64(size) - 1) / int64(size) }

// Reach refuses pages that lie too deep (decision 19); elsewhere names the way to get there.
func Reach(page, size int, elsewhere string) error {
	if page > MaxReach/size {
		return fault.Invalid(fault.InvalidPage, "page", "page times size may be at most %d; %s", MaxReach, elsewhere)
	}
	return nil
}
