package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/rules/ecb"
)

// Bounds of parameters.
const (
	maxPattern     = 512  // characters (decision 29)
	maxReplacement = 1024 // bytes
	maxAmount      = 64   // bytes of a text to read as a number
	maxExponent    = 100
)

// currency compiles CURRENCY_CONVERT. The output is exactly the source times the rate. Anything but
// a number counts as null.
func (c *checker) currency(params map[string]json.RawMessage) maker {
	c.known(params, "from", "to")
	var codes [2]string
	for i, name := range []string{"from", "to"} {
		if !read(c, params, name, &codes[i], "text") || !ecb.IsCode(codes[i]) {
			c.invalid("params."+name, "a currency code of three capital letters (ISO "+
				"4217) is needed")
		}
	}
	return func(_ *pattern.Budget, value json.RawMessage, day Day) (written, error) {
		amount, ok := readAmount(value, codes[0])
		if !ok {
			return written{}, nil
		}
		rate, date, ok := day.Table.Rate(codes[0], codes[1], day.At)
		if !ok {
			return written{}, nil
		}
		return written{value: json.RawMessage(amount.Mul(rate).String()),
			rate: json.RawMessage(rate.String()), date: date}, nil
	}
}

// readAmount reads a JSON number, or the one number in a short text such as a price, as package
// amount reads it. A percentage, a number with a factor and one of several are none. currency, a
// code of ISO 4217, says how many parts its unit has.
func readAmount(value json.RawMessage, currency string) (number decimal.Decimal, ok bool) {
	text := string(value)
	if len(value) > 0 && value[0] == '"' {
		text = textOf(value)
		if len(text) > maxAmount || !strings.ContainsFunc(text, unicode.IsDigit) {
			return number, false // "free" is not a number
		}
		found, ok := amount.Reader{}.WithCurrency(currency).Parse(text)
		if !ok || !found.Sole {
			return number, false
		}
		if text = found.Amount; found.Negative {
			text = "-" + text
		}
	}
	if len(text) > maxAmount {
		return number, false
	}
	number, err := decimal.NewFromString(text)
	if err != nil || number.Exponent() > maxExponent || number.Exponent() < -maxExponent {
		return number, false
	}
	return number, true
}

// enum compiles ENUM_MAP. Keys are the source as text: numbers and booleans as in JSON, null like
// an empty text.
func (c *checker) enum(params map[string]json.RawMessage) maker {
	c.known(params, "mapping", "default")
	var mapping map[string]json.RawMessage
	if !read(c, params, "mapping", &mapping, "an object of output values by source value") ||
		len(mapping) == 0 {
		c.invalid("params.mapping", "an object with at least one member is needed")
	}
	fallback := params["default"] // nil if there is none
	return func(_ *pattern.Budget, value json.RawMessage, _ Day) (written, error) {
		output, matched := mapping[textOf(compact(value))]
		if (!matched || string(output) == "null") && fallback != nil {
			output = fallback
		}
		return written{value: output}, nil
	}
}

func compact(value json.RawMessage) json.RawMessage {
	if len(value) == 0 || value[0] != '{' && value[0] != '[' {
		return value
	}
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return value
	}
	return out.Bytes()
}

// regex compiles REGEX_CLEAN. With a group, the output is that group in the first match. Otherwise
// it is the source with every match replaced. In the replacement, $1 or ${name} stand for groups
// and $$ for a dollar sign.
func (c *checker) regex(params map[string]json.RawMessage) maker {
	c.known(params, "pattern", "replacement", "group", "onNoMatch")
	r := regexRule{pattern: c.pattern(params), group: -1, noMatch: "KEEP"}
	if r.pattern == nil {
		return nil
	}
	var replacement string
	hasReplacement := read(c, params, "replacement", &replacement, "text")
	if len(replacement) > maxReplacement {
		c.invalid("params.replacement", "has at most %d bytes", maxReplacement)
	}
	if hasGroup := read(c, params, "group", &r.group, "a whole number"); hasGroup {
		if r.group < 0 || r.group > r.pattern.Groups() {
			c.invalid("params.group", "the pattern has the groups 0 to %d", r.pattern.Groups())
		}
		if hasReplacement {
			c.invalid("params.replacement", "group and replacement exclude each other")
		}
	}
	read(c, params, "onNoMatch", &r.noMatch, "text")
	if r.noMatch != "KEEP" && r.noMatch != "NULL" && r.noMatch != "EMPTY" {
		c.invalid("params.onNoMatch", "must be one of KEEP, NULL, EMPTY")
	}
	var err error
	if r.replacer, err = pattern.NewReplacer(r.pattern, replacement); err != nil {
		c.invalid("params.pattern", "is no regular expression (RE2): %v", err)
		return nil
	}
	return r.write
}

// pattern returns the compiled pattern of a rule, nil if it is invalid or exceeds its bounds.
func (c *checker) pattern(params map[string]json.RawMessage) *pattern.Pattern {
	var source string
	if !read(c, params, "pattern", &source, "text") || source == "" ||
		utf8.RuneCountInString(source) > maxPattern {
		c.invalid("params.pattern", "a regular expression (RE2) of 1 to %d characters is needed",
			maxPattern)
		return nil
	}
	compiled, err := c.patterns.Compile(source, func(source string) (*pattern.Pattern, error) {
		return pattern.Compile(source, maxPattern)
	})
	if err != nil {
		c.invalid("params.pattern", "is no regular expression (RE2) of its bounds: %v", err)
		return nil
	}
	return compiled
}

// regexRule cleans a text: by a group of its pattern, or by replacing all matches.
type regexRule struct {
	pattern  *pattern.Pattern
	group    int // negative: none
	replacer *pattern.Replacer
	noMatch  string // KEEP, NULL or EMPTY
}

// write returns the rule's output for a value.
func (r regexRule) write(b *pattern.Budget, value json.RawMessage, _ Day) (written, error) {
	if string(value) == "null" {
		return written{}, nil
	}
	value = compact(value) // as in rows
	text := textOf(value)
	match := r.pattern.Find(b, text)
	switch {
	case b.Err() != nil:
		return written{}, tooSlow(b.Err())
	case match == nil && r.noMatch == "KEEP":
		return written{value: value}, nil
	case match == nil && r.noMatch == "NULL":
		return written{value: null}, nil
	case match == nil:
		return written{value: quoted("")}, nil
	case r.group >= 0 && match[2*r.group] < 0: // the group did not participate
		return written{value: quoted("")}, nil
	case r.group >= 0:
		return written{value: quoted(text[match[2*r.group]:match[2*r.group+1]])}, nil
	}
	clean, ok := r.replacer.Replace(b, text, 2*MaxRowBytes)
	switch {
	case b.Err() != nil:
		return written{}, tooSlow(b.Err())
	case !ok:
		return written{}, tooLarge()
	}
	return written{value: quoted(clean)}, nil
}

// tooSlow returns the error for an ended budget.
func tooSlow(err error) error {
	if errors.Is(err, pattern.ErrExhausted) {
		return fault.Wrap(fault.PageTooCostly, err,
			"the patterns of the rules take too long on these rows")
	}
	return err
}
