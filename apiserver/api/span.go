package api

import (
	"strconv"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Span is what from and to of a list ask for (decision 43): from one time on, and before the other.
// A time that is not given is 0.
func Span(from, to Time) rowstore.PastSpan {
	return rowstore.PastSpan{From: int64(from), To: int64(to)}
}

// CheckSpan refuses a span that ends before it begins. One that ends where it begins is empty.
func CheckSpan(from, to Time) fault.List {
	if from == 0 || to == 0 || from <= to {
		return nil
	}
	return fault.List{fault.Invalid(fault.InvalidRequest, "from", "must not be later than to")}
}

// ReadWithin is what a cursor of a list is bound to: the read, and its span if it has one.
func ReadWithin(from, to Time, read ...string) []string {
	if from == 0 && to == 0 {
		return read
	}
	return append(read, "within", strconv.FormatInt(int64(from), 10),
		strconv.FormatInt(int64(to), 10))
}
