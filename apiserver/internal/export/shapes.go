package export

import (
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/rowstore"
)

// shapes is a set of the kinds of values in a column.
type shapes uint8

const (
	isText    shapes = 1 << iota
	isEscaped        // a text whose JSON form has escapes
	isBool           // true or false
	isInteger        // within 64 bits
	isLarge          // an integer that a float64 may round
	isDecimal        // a number whose digits a float64 keeps
	isOther          // an object, an array, or a number that fits neither
)

// keptDigits is how many decimal digits of any number a float64 keeps.
const keptDigits = 15

// shapeOf is the shape of a value; null has none.
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

// keepFloat converts a number to a float64. kept says whether no digit is lost.
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
	// numbers next to zero have fewer digits
	small := number < 1e-290 && number > -1e-290 && digits > 0
	return number, err == nil && digits <= keptDigits && !small
}
