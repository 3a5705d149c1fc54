package api

import (
	"strconv"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Span is the span of a list's from and to (decision 43): from is included, to is not. A missing
// time is 0.
func Span(from, to Time) rowstore.PastSpan {
	return rowstore.PastSpan{From: int64(from), To: int64(to)}
}

// CheckSpan refuses a span that ends before it begins. A span of length 0 is empty.
func CheckSpan(from, to Time) fault.List {
	if from == 0 || to == 0 || from <= to {
		return nil
	}
	return fault.List{fault.Invalid(fault.InvalidRequest, "from", "must not be later than to")}
}

// ReadWithin returns what binds a list's cursor: the read, and the span if there is one.
func ReadWithin(from, to Time, read ...string) []string {
	if from == 0 && to == 0 {
		return read
	}
	return append(read, "within", strconv.FormatInt(int64(from), 10),
		strconv.FormatInt(int64(to), 10))
}
