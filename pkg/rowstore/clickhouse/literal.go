package clickhouse

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// Values stand in the statements themselves: parameters would travel in the address of the request,
// which is too short for ten thousand ids. These functions are the only way for a value to get into
// a statement.

// text is a string literal.
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

// number is the literal of a finite float. There is one zero.
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

// id is the literal of one id.
func id(value ids.ID) string { return "unhex('" + value.String() + "')" }

// idArray is an array of ids, in one literal whatever their number.
func idArray(list []ids.ID) string {
	all := make([]byte, 0, len(list)*len(ids.ID{}))
	for _, id := range list {
		all = append(all, id[:]...)
	}
	return fmt.Sprintf(`arrayMap(i -> toFixedString(substring(unhex('%s'), 12 * i + 1, 12), 12), range(%d))`,
		hex.EncodeToString(all), len(list))
}

// shortSet is how many ids are written one by one: a literal set costs the server less than a
// subquery.
const shortSet = 64

// idSet is what stands behind IN.
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
