package match

import (
	"bytes"
	"math"
	"slices"
)

// class is the class of a token.
type class uint64

const (
	isWord class = iota
	isNumber
	isCode // a model or a part number
	isMeasure
	isColour
	isStem    // the part of a code on which makers and shops agree
	classBits = 3
)

// token is a word, number, code or measure as a hash of 61 bits and its class. Matching a million
// codes against another million, one of two million such matches has a collision.
func token(hash uint64, of class) uint64 { return hash<<classBits | uint64(of) }

func classOf(token uint64) class { return class(token & (1<<classBits - 1)) }

// hashText is FNV-1a with mixed bits, so that all of them can be used.
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

// card is a product in the form for comparison. Its lists are sorted and have no duplicates.
type card struct {
	tokens     []uint64
	stems      []uint64
	brand      []uint64 // words of its brand, which are also tokens
	quantities []quantity
	numbers    []Number
	pack       uint16  // number of items in a pack; 0: unknown
	model      uint64  // token of its model; 0: unknown
	rare       []uint8 // rarities of the tokens, parallel to them
	weight     uint32  // sum of rare
}

// sheet is reusable memory for reading products.
type sheet struct {
	card
	runs []run
	text []byte
	join []byte
}

// read makes the card of a product, valid until the next call.
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

// readModel reads a model as one code, whatever separates its parts.
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
	// bareCode is how many digits alone are a code.
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

// joins reports whether two runs with that separator may be parts of one code.
func joins(between byte) bool {
	return between == 0 || between == '-' || between == '.' || between == '_'
}

// group reads adjacent runs: a code, or words and numbers.
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

// isCode reports whether adjacent runs are one code: letters and digits without a gap, or with few
// letters besides the digits.
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

// code notes a code, and its stem without the letters at the end.
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

// pair notes a short word followed by a number: if written together, they are a code.
func (s *sheet) pair(first, second run) {
	if !first.digits && second.digits && len(first.text) <= 4 && second.before == ' ' &&
		!passedOver[string(first.text)] && bytes.IndexByte(second.text, '.') < 0 {
		s.join = append(append(s.join[:0], first.text...), second.text...)
		if len(s.join) >= minCode {
			s.stem(s.join)
		}
	}
}

// word notes a word by its meaning.
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
