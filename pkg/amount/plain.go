package amount

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain returns the beginning of a text with European digits and signs, one kind of space, and no
// zero-width characters. It puts raised cents after a point or a comma.
func plain(text string) string {
	if len(text) > maxText {
		// a cut number is a different one
		text = strings.TrimRightFunc(strings.ToValidUTF8(text[:maxText], ""), isOfNumber)
	}
	odd := false
	text = strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			odd = odd || '\t' <= r && r <= '\r'
			if r == '`' || r == '_' { // 1_000
				return '\''
			}
			return r
		case unicode.Is(unicode.Nd, r):
			return '0' + digitOf(r)
		case unicode.Is(unicode.Zs, r):
			return ' '
		case '！' <= r && r <= '～': // fullwidth forms
			if r = r - '！' + '!'; r != '-' {
				return r
			}
			return '–'
		case unicode.Is(unicode.Cf, r): // marks of direction, joiners, soft hyphens
			return -1
		}
		odd = odd || r == '·' || raisedDigit(r) >= 0
		if sign, ok := signs[r]; ok {
			return sign
		}
		return r
	}, text)
	if odd {
		text = lines.Replace(text)
		text = lowered(text)
	}
	return text
}

// isOfNumber reports whether a rune may be part of a number.
func isOfNumber(r rune) bool {
	return r == '.' || r == ',' || r == '\'' || r == '`' || r == '_' || unicode.IsDigit(r) ||
		unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(".,'", signs[r])
}

// digitOf returns the value of a decimal digit: the digits of a script are contiguous.
func digitOf(r rune) rune {
	for _, digits := range unicode.Nd.R16 {
		if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
			return (r - rune(digits.Lo)) % 10
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
			return (r - rune(digits.Lo)) % 10
		}
	}
	return 0
}

// signs maps other ways to write a sign.
var signs = map[rune]rune{'’': '\'', '‘': '\'', 'ʼ': '\'', '′': '\'', '´': '\'',
	'٫': '.', '٬': ',', '،': ',', '−': '–', '‐': '–', '‑': '–', '‒': '–', '—': '–', '―': '–',
	'﹣': '–', '٪': '%', '﹪': '%', '﹩': '$', '￡': '£', '￠': '¢'}

// lines separates what is on several lines, so that it does not form groups of one number.
var lines = strings.NewReplacer("\n", "  ", "\t", "  ", "\r", "  ", "\v", "  ", "\f", "  ")

// raisedDigit returns the value of a raised digit, -1 for other runes.
func raisedDigit(r rune) rune {
	switch {
	case r == '⁰' || '⁴' <= r && r <= '⁹':
		return r - '⁰'
	case r == '¹':
		return 1
	case r == '²' || r == '³':
		return r - '²' + 2
	}
	return -1
}

// lowered lowers two raised digits after a number, as its cents: $12⁹⁹. Others are notes and
// powers. A middle dot between digits becomes a point.
func lowered(text string) string {
	runes := []rune(text)
	var out strings.Builder
	for i := 0; i < len(runes); {
		end := i
		for end < len(runes) && raisedDigit(runes[end]) >= 0 {
			end++
		}
		if end == i {
			r := runes[i]
			if r == '·' && i > 0 && i+1 < len(runes) && isDigit(runes[i-1]) && isDigit(runes[i+1]) {
				r = '.'
			}
			out.WriteRune(r)
			i++
			continue
		}
		before := out.String()
		if sign, ok := centSign(before, string(runes[end:])); ok && end-i == 2 {
			out.Reset()
			out.WriteString(strings.TrimRight(before, " ") + sign)
			out.WriteRune('0' + raisedDigit(runes[i]))
			out.WriteRune('0' + raisedDigit(runes[i+1]))
		} else {
			out.WriteString(string(runes[i:end]))
		}
		i = end
	}
	return out.String()
}

// centSign returns the sign to put between a number and raised digits, if these may be its cents.
// After 10 they are a power, unless a currency is beside it.
func centSign(before, after string) (sign string, ok bool) {
	before = strings.TrimRight(before, " ")
	whole := strings.TrimRight(strings.TrimRightFunc(before, isCurrencySign), " ")
	if sign := strings.TrimRight(before, ".,"); len(before)-len(sign) == 1 || whole != before {
		return "", digitAt(whole, len(whole)-1) || digitAt(sign, len(sign)-1)
	}
	number := strings.TrimLeft(before[len(strings.TrimRight(before, ".,0123456789")):], ".,")
	switch point, comma := strings.Contains(number, "."), strings.Contains(number, ","); {
	case !digitAt(before, len(before)-1), point && comma,
		number == "10" && !isBeside(before[:len(before)-len(number)], after):
		return "", false
	case point:
		return ",", true
	}
	return ".", true
}

// isBeside reports whether there is a currency directly before or after a number.
func isBeside(before, after string) bool {
	left, _ := spellingBefore(strings.TrimRight(before, " ")) // Fr. 10⁵⁰: the point is its own
	if left == nil {
		left, _ = spellingBefore(strings.TrimRight(before, between))
	}
	right, _ := spellingAfter(strings.TrimLeft(after, between))
	return left != nil || right != nil
}

func isCurrencySign(r rune) bool { return unicode.Is(unicode.Sc, r) }
