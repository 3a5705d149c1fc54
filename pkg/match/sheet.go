package match

import (
	"bytes"
	"math"
	"slices"
)

// class is what a token is.
type class uint64

const (
	isWord class = iota
	isNumber
	isCode // a model or a part number
	isMeasure
	isColour
	isStem    // the part of a code that makers and shops agree about
	classBits = 3
)

// token is a word, number, code or measure as a hash of 61 bits and its class. A million codes
// against a million others have two of one hash once in two million such matches.
func token(hash uint64, of class) uint64 { return hash<<classBits | uint64(of) }

func classOf(token uint64) class { return class(token & (1<<classBits - 1)) }

// hashText is FNV-1a with its bits mixed, so that all of them may be used.
func hashText(text []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix(h)
}

func hashNumber(n uint64) uint64 { return mix(n ^ 0x9e3779b97f4a7c15) }

func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// card is a product as it is compared. Its lists are in order, and have nothing twice.
type card struct {
	tokens     []uint64
	stems      []uint64
	brand      []uint64 // words of its brand, which are tokens, too
	quantities []quantity
	numbers    []Number
	pack       uint16  // how many a pack has, 0: it is not said
	model      uint64  // token of its model, 0: it is not said
	rare       []uint8 // how rare the tokens are, beside them
	weight     uint32  // sum of rare
}

// sheet is where products are read, one after another.
type sheet struct {
	card
	runs []run
	text []byte
	join []byte
}

// read makes the card of a product. It holds until the next call.
func (s *sheet) read(p *Product) *card {
	c := &s.card
	c.tokens, c.stems, c.brand = c.tokens[:0], c.stems[:0], c.brand[:0]
	c.quantities, c.numbers, c.pack, c.model = c.quantities[:0], c.numbers[:0], 0, 0
	for _, text := range p.Numbers {
		if n, ok := ParseNumber(text); ok && len(c.numbers) < maxNumbers {
			c.numbers = append(c.numbers, n)
		}
	}
	s.readBrand(p.Brand)
	s.readModel(p.Model)
	s.readTitle(p.Title)
	c.tokens, c.stems, c.brand = distinct(c.tokens), distinct(c.stems), distinct(c.brand)
	c.quantities, c.numbers = distinct(c.quantities), distinct(c.numbers)
	return c
}

func distinct[T uint64 | quantity | Number](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *sheet) readBrand(text string) {
	s.text = fold(s.text[:0], text)
	s.runs = appendRuns(s.runs[:0], s.text)
	for i := range s.runs {
		if at := len(s.tokens); !s.runs[i].digits {
			s.word(s.runs[i].text)
			s.brand = append(s.brand, s.tokens[at:]...)
		}
	}
}

// readModel takes a model as one code, whatever stands between its parts.
func (s *sheet) readModel(text string) {
	s.text = fold(s.text[:0], text)
	s.runs = appendRuns(s.runs[:0], s.text)
	s.join = s.join[:0]
	for _, r := range s.runs {
		s.join = append(s.join, r.text...)
	}
	if len(s.join) >= minCode && len(s.join) <= maxCode {
		s.code(s.join)
		s.model = token(hashText(s.join), isCode)
	}
}

// Bounds of codes.
const (
	minCode = 3
	maxCode = 32
	// bareCode is how many digits are a code by themselves.
	bareCode = 5
)

func (s *sheet) readTitle(text string) {
	s.text = fold(s.text[:0], text)
	s.runs = appendRuns(s.runs[:0], s.text)
	for i := 0; i < len(s.runs); {
		if used := s.measured(i); used > 0 {
			i += used
			continue
		}
		end := i + 1
		for end < len(s.runs) && joins(s.runs[end].before) {
			end++
		}
		s.group(s.runs[i:end])
		if end == i+1 && end < len(s.runs) {
			s.pair(s.runs[i], s.runs[end])
		}
		i = end
	}
}

// joins says of what stands between two runs whether they may be parts of one code.
func joins(between byte) bool {
	return between == 0 || between == '-' || between == '.' || between == '_'
}

// group reads runs that stand together: a code, or words and numbers.
func (s *sheet) group(runs []run) {
	if s.isCode(runs) {
		s.join = s.join[:0]
		for _, r := range runs {
			s.join = append(s.join, r.text...)
			if !r.digits && len(r.text) > 3 {
				s.word(r.text)
			}
		}
		s.code(s.join)
		return
	}
	for _, r := range runs {
		switch {
		case !r.digits:
			s.word(r.text)
		case len(r.text) >= bareCode && r.value == math.Trunc(r.value):
			s.code(r.text)
		default:
			s.put(token(hashNumber(math.Float64bits(r.value)), isNumber))
		}
	}
}

// isCode says whether runs that stand together are one code: letters and digits without a gap, or
// with few letters beside the digits.
func (s *sheet) isCode(runs []run) bool {
	length, digits, mixed := 0, 0, false
	for i, r := range runs {
		length += len(r.text)
		if r.digits {
			digits += len(r.text)
		}
		if i > 0 && r.digits != runs[i-1].digits {
			letters := len(r.text)
			if r.digits {
				letters = len(runs[i-1].text)
			}
			mixed = mixed || r.before == 0 || letters <= 3
		}
	}
	return mixed && digits > 0 && length >= minCode && length <= maxCode
}

// code notes a code, and what is left of it without the letters at its end.
func (s *sheet) code(text []byte) {
	s.put(token(hashText(text), isCode))
	end := len(text)
	for end > 0 && (text[end-1] < '0' || text[end-1] > '9') {
		end--
	}
	if end < 4 {
		end = len(text)
	}
	s.stem(text[:end])
}

func (s *sheet) stem(text []byte) {
	if len(s.stems) < maxTokens {
		s.stems = append(s.stems, token(hashText(text), isStem))
	}
}

// pair notes a short word with a number behind it: who writes them together means a code.
func (s *sheet) pair(first, second run) {
	if !first.digits && second.digits && len(first.text) <= 4 && second.before == ' ' &&
		!passedOver[string(first.text)] && bytes.IndexByte(second.text, '.') < 0 {
		s.join = append(append(s.join[:0], first.text...), second.text...)
		if len(s.join) >= minCode {
			s.stem(s.join)
		}
	}
}

// word notes a word by what it means.
func (s *sheet) word(text []byte) {
	if passedOver[string(text)] {
		return
	}
	if one, known := same[string(text)]; known {
		of := isWord
		if colours[one] {
			of = isColour
		}
		s.put(token(hashText([]byte(one)), of))
		return
	}
	if n := len(text); n > 3 && text[n-1] == 's' && text[n-2] != 's' {
		text = text[:n-1]
	}
	s.put(token(hashText(text), isWord))
}

func (s *sheet) put(token uint64) {
	if len(s.tokens) < maxTokens {
		s.tokens = append(s.tokens, token)
	}
}
