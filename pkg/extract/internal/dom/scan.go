package dom

import (
	"math/bits"
	"strings"
)

const whitespace = " \t\r\n\f"

// Classes of bytes in tags.
const (
	space   = 1 << iota // white space
	nameEnd             // ends a tag name
	keyEnd              // ends an attribute name
	upper               // A-Z
)

var classes = func() (c [256]uint8) {
	for _, b := range whitespace {
		c[b] = space | nameEnd | keyEnd
	}
	c['/'], c['>'], c['='] = nameEnd|keyEnd, nameEnd|keyEnd, keyEnd
	for b := 'A'; b <= 'Z'; b++ {
		c[b] = upper
	}
	return c
}()

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// readTag reads the tag whose name begins at i into tok and moves past it. It appends a start tag's
// attributes to the document if they matter. A tag cut off by the end of the page makes the page
// odd.
func (b *builder) readTag(i int, start bool) bool {
	s, t := b.s, &b.tok
	t.attrs, t.class, t.id = int32(len(b.d.attrs)), -1, -1
	t.selfClosing, t.used = false, false
	if end, key := shortName(s[i:]); end > 0 {
		if t.tag = tagsByName.find(key, ""); t.tag == other {
			t.named = s[i : i+end]
		}
		i += end
	} else {
		i = b.readName(i)
	}
	if i < len(s) && s[i] == '>' {
		b.pos = i + 1
		return true
	}
	return b.readAttrs(i, start && (b.reads.has(t.tag) || len(b.stack) > 0 && b.top().foreign))
}

// shortName returns the length and the key of the name at the start of s. It returns 0 unless the
// name has fewer than eight characters, all lower-case letters, and ends before the page does.
func shortName(s string) (n int, key uint64) {
	if len(s) < 8 {
		return 0, 0
	}
	const each = 0x0101010101010101
	w := eightBytes(s)
	// The lowest byte with its high bit set here is the first one below "@".
	below := (w - '@'*each) &^ w & (0x80 * each)
	if below == 0 {
		return 0, 0
	}
	bits := bits.TrailingZeros64(below) &^ 7
	mask := uint64(1)<<bits - 1
	const small = 0x20 * each // the bit that upper-case letters lack
	if classes[byte(w>>bits)]&nameEnd == 0 || w&mask&small != small&mask {
		return 0, 0
	}
	return bits / 8, w & mask
}

// readName reads any tag name that begins at i into tok and returns where it ends.
func (b *builder) readName(i int) int {
	s, from, t := b.s, i, &b.tok
	var seen uint8
	for ; i < len(s); i++ {
		c := classes[s[i]]
		if c&nameEnd != 0 {
			break
		}
		seen |= c
	}
	t.named = s[from:i]
	if seen&upper != 0 {
		t.named = lowerASCII(t.named)
	}
	t.tag = tagOf(t.named)
	return i
}

// readAttrs reads the rest of a tag after its name.
func (b *builder) readAttrs(i int, keep bool) bool {
	s := b.s
	valueEnd := 0 // of the last attribute kept
	for {
		for i < len(s) && classes[s[i]]&space != 0 {
			i++
		}
		if i >= len(s) {
			b.giveUp(oddEnd)
			return false
		}
		if s[i] == '>' {
			break
		}
		var name, value string
		var seen uint8
		end := i
		for ; end < len(s) && classes[s[end]]&keyEnd == 0; end++ {
			seen |= classes[s[end]]
		}
		if name = s[i:end]; end > i && strings.HasPrefix(s[end:], `="`) { // the usual spelling
			n := strings.IndexByte(s[end+2:], '"')
			if n < 0 {
				b.giveUp(oddEnd)
				return false
			}
			value = s[end+2 : end+2+n]
			end += 2 + n
			i = end + 1
		} else {
			seen = upper // readAttr does not examine the case
			name, value, i, end = readAttr(s, i)
		}
		if keep && name != "" && b.keepAttr(name, value, seen&upper != 0) {
			if valueEnd = end; b.odd != notOdd {
				return false // too many attributes to compare
			}
		}
	}
	b.tok.selfClosing = s[i-1] == '/' && (int32(len(b.d.attrs)) == b.tok.attrs || valueEnd != i)
	b.pos = i + 1
	return b.odd == notOdd
}

// readAttr reads an attribute that begins at i, which is neither white space nor ">". next is where
// to continue, end the end of the value.
func readAttr(s string, i int) (name, value string, next, end int) {
	start := i
	if s[i] == '=' {
		i++
	}
	for i < len(s) && classes[s[i]]&keyEnd == 0 {
		i++
	}
	name, end = s[start:i], i
	for i < len(s) && classes[s[i]]&space != 0 {
		i++
	}
	if i >= len(s) || s[i] != '=' {
		if i < len(s) && s[i] == '/' {
			i++
		}
		return name, "", i, end
	}
	i++
	for i < len(s) && classes[s[i]]&space != 0 {
		i++
	}
	if i >= len(s) || s[i] == '>' {
		return name, "", i, end
	}
	start = i
	if q := s[i]; q == '"' || q == '\'' {
		n := strings.IndexByte(s[i+1:], q)
		if n < 0 {
			return name, "", len(s), len(s)
		}
		return name, s[i+1 : i+1+n], i + n + 2, i + 1 + n
	}
	for i < len(s) && classes[s[i]]&space == 0 && s[i] != '>' {
		i++
	}
	return name, s[start:i], i, i
}

// keepAttr adds an attribute to the current tag, unless it already has one with that name. capital
// says that the name may have upper-case letters.
func (b *builder) keepAttr(name, value string, capital bool) bool {
	if capital {
		name = lowerASCII(name)
	}
	have := b.d.attrs[b.tok.attrs:]
	for i := range have {
		if have[i].name == name {
			return false
		}
	}
	switch name {
	case "class":
		b.tok.class = int32(len(b.d.attrs))
	case "id":
		b.tok.id = int32(len(b.d.attrs))
	}
	b.d.attrs = append(b.d.attrs, attr{name, value})
	if len(have) >= maxAttrs || len(b.d.attrs) > maxParts {
		b.giveUp(oddLarge)
	}
	return true
}
