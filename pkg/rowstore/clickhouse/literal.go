package clickhouse

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// Values are written into the statements: parameters would travel in the request's URL, which is
// too short for ten thousand ids. Only these functions may put a value into a statement.

// text returns a string literal.
func text(value string) string {
	var b strings.Builder
	b.Grow(len(value) + 2)
	b.WriteByte('\'')
	for i := range len(value) {
		switch c := value[i]; c {
		case '\'', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case 0:
			b.WriteString(`\0`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// number returns the literal of a finite float. -0 becomes 0.
func number(value float64) string {
	if value == 0 {
		return "0."
	}
	digits := strconv.FormatFloat(value, 'g', -1, 64)
	if math.Trunc(value) == value && !strings.ContainsAny(digits, ".e") {
		digits += "." // a float, not an integer
	}
	return digits
}

// id returns the literal of one id.
func id(value ids.ID) string { return "unhex('" + value.String() + "')" }

// idArray returns an array of ids, as one literal for any number of them.
func idArray(list []ids.ID) string {
	all := make([]byte, 0, len(list)*len(ids.ID{}))
	for _, id := range list {
		all = append(all, id[:]...)
	}
	return fmt.Sprintf(`arrayMap(i -> toFixedString(substring(unhex('%s'), 12 * i + 1, 12), 12), range(%d))`,
		hex.EncodeToString(all), len(list))
}

// shortSet is the most ids that are written out: a literal set costs the server less than a
// subquery.
const shortSet = 64

// idSet returns the operand of IN.
func idSet(list []ids.ID) string {
	if len(list) > 0 && len(list) <= shortSet {
		return "(" + join(list, id) + ")"
	}
	return "(SELECT arrayJoin(" + idArray(list) + "))"
}

func join[T any](values []T, print func(T) string) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(print(v))
	}
	return b.String()
}
