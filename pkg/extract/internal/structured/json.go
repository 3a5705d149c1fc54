package structured

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/jsontext"
)

// JSON is a JSON value in the order and the spelling of its source.
type JSON struct {
	Kind    Kind
	Text    string   // as in Value
	Members []Member // Array: elements, without names; Object: members in order
}

// Member is a member of an object. If several have the same name, the last counts.
type Member struct {
	Name  string
	Value JSON
}

// Get returns a member of an object, or nil.
func (j *JSON) Get(name string) *JSON {
	if j == nil || j.Kind != Object {
		return nil
	}
	for i := len(j.Members) - 1; i >= 0; i-- {
		if j.Members[i].Name == name {
			return &j.Members[i].Value
		}
	}
	return nil
}

var (
	errNotJSON  = errors.New("structured: not JSON")
	errTooLarge = errors.New("structured: too many values, or nested too deep")
)

// ParseJSON reads JSON as pages write it, more leniently than JavaScript engines. It accepts
// trailing and missing commas, comments, raw line breaks in strings, and strings in single quotes.
// It also accepts unquoted names, and input that ends before everything is closed. Valid JSON keeps
// its meaning. At most maxValues values are read, nested at most maxDepth deep.
func ParseJSON(s string) (*JSON, error) {
	p := parser{s: s, left: maxValues}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i < len(s) && strings.Trim(s[p.i:], "; \t\r\n") != "" {
		return nil, errNotJSON
	}
	return &v, nil
}

// parser reads one JSON value from the front of s.
type parser struct {
	s     string
	i     int
	left  int  // number of values that may follow
	loose bool // something was not valid JSON
	buf   []byte

	bound map[string]JSON // what names stand for
	room  int             // bytes of text that names may stand for
}

// space skips white space and comments.
func (p *parser) space() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			p.i++
		case c == '\f' || c == '\v':
			p.loose = true
			p.i++
		case strings.HasPrefix(p.s[p.i:], "\u00a0"), strings.HasPrefix(p.s[p.i:], "\ufeff"):
			p.loose = true
			_, size := utf8.DecodeRuneInString(p.s[p.i:])
			p.i += size
		case strings.HasPrefix(p.s[p.i:], "//"):
			p.skipPast("\n")
		case strings.HasPrefix(p.s[p.i:], "/*"):
			p.skipPast("*/")
		default:
			return
		}
	}
}

func (p *parser) skipPast(end string) {
	p.loose = true
	if at := strings.Index(p.s[p.i+2:], end); at >= 0 {
		p.i += 2 + at + len(end)
	} else {
		p.i = len(p.s)
	}
}

func (p *parser) value(depth int) (JSON, error) {
	if p.left--; p.left < 0 || depth > maxDepth {
		return JSON{}, errTooLarge
	}
	p.space()
	if p.i == len(p.s) {
		return JSON{}, errNotJSON
	}
	switch c := p.s[p.i]; c {
	case '{':
		return p.members(JSON{Kind: Object}, '}', depth)
	case '[':
		return p.members(JSON{Kind: Array}, ']', depth)
	case '"', '\'':
		text, err := p.text(c)
		return JSON{Kind: String, Text: text}, err
	}
	return p.word()
}

// members reads the contents of an object or an array, up to its end.
func (p *parser) members(j JSON, end byte, depth int) (JSON, error) {
	p.i++
	comma := true
	for {
		p.space()
		if p.i == len(p.s) {
			p.loose = true
			return j, nil
		}
		switch c := p.s[p.i]; {
		case c == end:
			p.loose = p.loose || comma && len(j.Members) > 0
			p.i++
			return j, nil
		case c == ',':
			p.loose = p.loose || comma
			comma = true
			p.i++
			continue
		}
		p.loose = p.loose || !comma
		comma = false
		var m Member
		var err error
		if j.Kind == Object {
			if m.Name, err = p.name(); err != nil {
				return j, err
			}
		}
		if m.Value, err = p.value(depth + 1); err != nil {
			return j, err
		}
		j.Members = append(j.Members, m)
	}
}

// name reads a member's name and the colon after it.
func (p *parser) name() (string, error) {
	var name string
	if c := p.s[p.i]; c == '"' || c == '\'' {
		text, err := p.text(c)
		if err != nil {
			return "", err
		}
		name = text
	} else {
		start := p.i
		for p.i < len(p.s) && isWord(p.s[p.i]) {
			p.i++
		}
		if name = p.s[start:p.i]; name == "" {
			return "", errNotJSON
		}
		p.loose = true
	}
	p.space()
	if p.i == len(p.s) || p.s[p.i] != ':' {
		return "", errNotJSON
	}
	p.i++
	return name, nil
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' ||
		c == '$' || c == '.' ||
		c == '+' || c == '-' || c == '@'
}

// word reads a number or a constant. Other words are not data.
func (p *parser) word() (JSON, error) {
	start := p.i
	for p.i < len(p.s) && isWord(p.s[p.i]) {
		p.i++
	}
	word := p.s[start:p.i]
	if v, ok := p.bound[word]; ok {
		p.loose = true
		if p.room -= writtenSize(v.Text); p.room < 0 {
			return JSON{}, errTooLarge
		}
		return v, nil
	}
	switch {
	case word == "true" || word == "false":
		return JSON{Kind: Bool, Text: word}, nil
	case word == "null":
		return JSON{}, nil
	case word == "undefined" || word == "NaN" || word == "Infinity" || word == "-Infinity":
		p.loose = true
		return JSON{}, nil
	case word == "void" && strings.HasPrefix(p.s[p.i:], " 0"): // undefined, shortened
		p.loose = true
		p.i += len(" 0")
		return JSON{}, nil
	case isNumber(word):
		return JSON{Kind: Number, Text: word}, nil
	case word != "" && word[0] <= '9':
		p.loose = true
		// 007, .5, +1: not JSON, but the meaning is plain
		return JSON{Kind: String, Text: word}, nil
	}
	return JSON{}, errNotJSON
}

// isNumber says whether s is a number in JSON's grammar.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	digits := func() bool {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if strings.HasPrefix(s, "0") {
		s = s[1:]
	} else if !digits() {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if s = rest; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

// text reads a string. An escape unknown to JSON stands for the character after the backslash.
func (p *parser) text(quote byte) (string, error) {
	p.loose = p.loose || quote != '"'
	p.i++
	start := p.i
	for p.i < len(p.s) && p.s[p.i] != quote && p.s[p.i] != '\\' {
		p.loose = p.loose || p.s[p.i] < ' '
		p.i++
	}
	if p.i < len(p.s) && p.s[p.i] == quote {
		p.i++
		return p.s[start : p.i-1], nil
	}
	p.buf = append(p.buf[:0], p.s[start:p.i]...)
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == quote:
			return string(p.buf), nil
		case c == '\\' && p.i < len(p.s):
			p.escape()
		default:
			p.loose = p.loose || c < ' '
			p.buf = append(p.buf, c)
		}
	}
	return "", errNotJSON
}

// escape reads the rest of an escape after the backslash.
func (p *parser) escape() {
	c := p.s[p.i]
	p.i++
	switch c {
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		if r, ok := p.hex(4); ok {
			p.buf = utf8.AppendRune(p.buf, p.pair(r))
			return
		}
	case 'x':
		if r, ok := p.hex(2); ok {
			p.loose = true
			p.buf = utf8.AppendRune(p.buf, r)
			return
		}
	}
	p.loose = p.loose || !strings.ContainsRune("\"\\/\b\f\n\r\t", rune(c))
	p.buf = append(p.buf, c)
}

// hex reads n hexadecimal digits.
func (p *parser) hex(n int) (rune, bool) {
	if len(p.s)-p.i < n {
		return 0, false
	}
	code, err := strconv.ParseUint(p.s[p.i:p.i+n], 16, 32)
	if err != nil {
		return 0, false
	}
	p.i += n
	return rune(code), true
}

// pair returns the character of a surrogate and the one that follows.
func (p *parser) pair(r rune) rune {
	if !utf16.IsSurrogate(r) {
		return r
	}
	if strings.HasPrefix(p.s[p.i:], `\u`) {
		before := p.i
		p.i += 2
		if low, ok := p.hex(4); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both
			}
		}
		p.i = before
	}
	return utf8.RuneError
}

// Item returns an object as an untyped item: its members are properties, nested objects items.
func (j *JSON) Item() *Item {
	it := &Item{}
	var values func([]Value, *JSON) []Value
	values = func(list []Value, j *JSON) []Value {
		switch j.Kind {
		case Null:
		case Array:
			for i := range j.Members {
				list = values(list, &j.Members[i].Value)
			}
		case Object:
			list = append(list, Value{Kind: Entity, Item: j.Item()})
		default:
			list = append(list, Value{Kind: j.Kind, Text: j.Text})
		}
		return list
	}
	for i := range j.Members {
		if found := values(nil, &j.Members[i].Value); len(found) > 0 {
			it.Props = append(it.Props, Prop{j.Members[i].Name, found})
		}
	}
	return it
}

// Append appends the value as valid JSON. Of members with the same name, only the last is written.
func (j *JSON) Append(dst []byte) []byte {
	switch j.Kind {
	case Null:
		return append(dst, "null"...)
	case Bool, Number:
		return append(dst, j.Text...)
	case Array:
		dst = append(dst, '[')
		for i := range j.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = j.Members[i].Value.Append(dst)
		}
		return append(dst, ']')
	case Object:
		return j.appendObject(dst)
	}
	return jsontext.AppendString(dst, j.Text)
}

func (j *JSON) appendObject(dst []byte) []byte {
	last := make(map[string]int, len(j.Members))
	for i := range j.Members {
		last[j.Members[i].Name] = i
	}
	dst = append(dst, '{')
	written := false
	for i := range j.Members {
		m := &j.Members[i]
		if last[m.Name] != i {
			continue
		}
		if written {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendString(dst, m.Name), ':')
		dst = m.Value.Append(dst)
		written = true
	}
	return append(dst, '}')
}
