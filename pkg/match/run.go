package match

import (
	"unicode"
	"unicode/utf8"
)

// run is a sequence of letters or of digits. An inch sign after digits counts as letters.
type run struct {
	text   []byte
	digits bool
	value  float64 // of digits
	// before is the byte before the run. It is 0 if the run is glued to the previous one, and a
	// space if there are several bytes or none.
	before byte
}

// maxRuns is the most runs read of a title.
const maxRuns = 160

// appendRuns splits folded text into runs.
func appendRuns(to []run, text []byte) []run {
	before, free := byte(' '), false // free: something was in between
	for i := 0; i < len(text) && len(to) < maxRuns; {
		c := text[i]
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		start := i
		switch {
		case c >= '0' && c <= '9':
			end, value := scanNumber(text, i)
			i = end
			to = append(to, run{text: text[start:i], digits: true, value: value, before: before})
		case isLetter(r):
			for i < len(text) {
				r, size = rune(text[i]), 1
				if r >= utf8.RuneSelf {
					r, size = utf8.DecodeRune(text[i:])
				}
				if !isLetter(r) {
					break
				}
				i += size
			}
			to = append(to, run{text: text[start:i], before: before})
		case (c == '"' || c == '\'') && before == 0 && len(to) > 0 && to[len(to)-1].digits:
			i++
			if i < len(text) && text[i] == c && c == '\'' {
				i++
			}
			if c == '"' || i-start == 2 {
				to = append(to, run{text: inchSign, before: 0})
			}
			before, free = ' ', true
			continue
		default:
			i += size
			if free {
				before = ' '
			} else {
				before = c
			}
			free = true
			continue
		}
		before, free = 0, false
	}
	return to
}

var inchSign = []byte(`"`)

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z'
	}
	return unicode.IsLetter(r)
}

// scanNumber reads digits from i on, with their groups and decimal part.
func scanNumber(text []byte, i int) (end int, value float64) {
	value, end = digitsAt(text, i)
	for end+3 < len(text) && text[end] == ',' && end-i <= 3 {
		group, after := digitsAt(text, end+1)
		if after != end+4 {
			break
		}
		value, end = value*1000+group, after
		i = end - 3
	}
	if end+1 < len(text) && (text[end] == '.' || text[end] == ',') && isDigit(text[end+1]) {
		part, after := digitsAt(text, end+1)
		if after-end > 4 || (after < len(text) && text[after] == '.' && after+1 < len(text) &&
			isDigit(text[after+1])) {
			return end, value // a version, or a part number
		}
		for range after - end - 1 {
			part /= 10
		}
		return after, value + part
	}
	return end, value
}

// digitsAt reads at most 15 digits from i on.
func digitsAt(text []byte, i int) (value float64, end int) {
	for end = i; end < len(text) && end-i < 15 && isDigit(text[end]); end++ {
		value = value*10 + float64(text[end]-'0')
	}
	return value, end
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
