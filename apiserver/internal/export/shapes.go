package export

import (
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/rowstore"
)

// shapes are what values are, as a set.
type shapes uint8

const (
	isText    shapes = 1 << iota
	isEscaped        // a text that does not stand between its quotes as it is
	isBool           // true or false
	isInteger        // within 64 bits
	isLarge          // an integer that a float64 may round
	isDecimal        // a number that a float64 keeps
	isOther          // an object, an array, or a number that neither keeps
)

// keptDigits are the decimal digits that a float64 keeps of any number.
const keptDigits = 15

// shapeOf is what a value is; null is nothing.
func shapeOf(m *rowstore.Members) shapes {
	switch m.Value[0] {
	case '"':
		if m.IsPlain() {
			return isText
		}
		return isText | isEscaped
	case 't', 'f':
		return isBool
	case 'n':
		return 0
	case '{', '[':
		return isOther
	}
	return numberShape(m.Value)
}

func numberShape(value string) shapes {
	if _, err := strconv.ParseInt(value, 10, 64); err == nil && value != "-0" {
		if len(value) > keptDigits {
			return isInteger | isLarge
		}
		return isInteger
	}
	if _, kept := keepFloat(value); kept {
		return isDecimal
	}
	return isOther
}

// keepFloat is a number as a float64; kept: it is the same number still.
func keepFloat(value string) (number float64, kept bool) {
	mantissa := value
	if at := strings.IndexAny(value, "eE"); at >= 0 {
		mantissa = value[:at]
	}
	mantissa = strings.TrimLeft(mantissa, "-0.")
	digits := len(mantissa)
	if strings.IndexByte(mantissa, '.') >= 0 {
		digits--
	}
	number, err := strconv.ParseFloat(value, 64)
	// what is next to zero has fewer digits
	small := number < 1e-290 && number > -1e-290 && digits > 0
	return number, err == nil && digits <= keptDigits && !small
}
