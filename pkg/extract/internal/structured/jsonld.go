package structured

import (
	"errors"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// readBlock reads a block of JSON-LD. A broken block does not affect the others.
func (r *reader) readBlock(text string) {
	if r.blocks++; r.blocks > maxBlocks {
		r.data.Cut = true
		return
	}
	values, ok := r.parseBlock(text)
	if !ok && strings.Contains(text, "&") { // escaped for an attribute or by an editor
		values, ok = r.parseBlock(html.UnescapeString(text))
	}
	if !ok {
		return
	}
	for i := range values {
		r.topLevel(&values[i], 0)
	}
}

// parseBlock reads the values of a block: one, as the standard says, or several in sequence.
func (r *reader) parseBlock(text string) ([]JSON, bool) {
	if r.parsed += len(text); r.parsed > maxParsed {
		r.data.Cut = true
		return nil, false
	}
	p := parser{s: unwrap(text), left: maxValues}
	var values []JSON
	for {
		p.skipSeparators()
		if p.i == len(p.s) || p.s[p.i] != '{' && p.s[p.i] != '[' {
			return values, len(values) > 0
		}
		v, err := p.value(0)
		if err != nil {
			r.data.Cut = r.data.Cut || errors.Is(err, errTooLarge)
			return values, len(values) > 0
		}
		values = append(values, v)
	}
}

func (p *parser) skipSeparators() {
	for {
		p.space()
		if p.i == len(p.s) || p.s[p.i] != ',' && p.s[p.i] != ';' {
			return
		}
		p.i++
	}
}

// wrappers match what old advice and content systems put before the data of a script. A JavaScript
// comment that the parser skips is not one of them.
var wrappers = regexp.MustCompile(`^(?:\s|\x{feff}|<!--[^{\[]*-->|(?://|/\*)?\s*(?:<!\[CDATA\[|<!--)\s*(?:\*/|-->)?)+`)

// unwrap returns a script without the wrapper. What follows the data is ignored.
func unwrap(s string) string {
	return s[len(wrappers.FindString(s)):]
}

// topLevel makes items of a value that is not a property.
func (r *reader) topLevel(j *JSON, depth int) {
	switch {
	case depth > maxDepth:
	case j.Kind == Array:
		for i := range j.Members {
			r.topLevel(&j.Members[i].Value, depth+1)
		}
	case j.Kind == Object:
		it := r.item(j, depth)
		if len(it.Props) > 0 {
			r.data.Items = append(r.data.Items, it)
		}
		if graph := j.Get("@graph"); graph != nil {
			r.topLevel(graph, depth+1)
		}
	}
}

// item makes an item of an object.
func (r *reader) item(j *JSON, depth int) *Item {
	it := &Item{Source: JSONLD}
	places := make(map[string]int, len(j.Members))
	for i := range j.Members {
		m := &j.Members[i]
		switch m.Name {
		case "@type":
			it.Types = typesOf(&m.Value)
			continue
		case "@id":
			it.ID = decodeReferences(m.Value.Text)
			continue
		}
		name := local(m.Name)
		if name == "" || name[0] == '@' || m.Value.Kind == Null {
			continue
		}
		values := r.valuesOf(nil, &m.Value, depth+1)
		place, again := places[name]
		switch {
		case len(values) == 0:
		case again:
			it.Props[place].Values = values
		case len(it.Props) == maxProps:
			r.data.Cut = true
		default:
			places[name] = len(it.Props)
			it.Props = append(it.Props, Prop{name, values})
		}
	}
	return it
}

func typesOf(j *JSON) []string {
	if j.Kind == String {
		return []string{local(j.Text)}
	}
	var types []string
	for i := range j.Members {
		if t := &j.Members[i].Value; t.Kind == String {
			types = append(types, local(t.Text))
		}
	}
	return types
}

// valuesOf appends the values of a member. It flattens nested lists, as JSON-LD does.
func (r *reader) valuesOf(values []Value, j *JSON, depth int) []Value {
	switch j.Kind {
	case Null:
	case Array:
		for i := range j.Members {
			values = r.valuesOf(values, &j.Members[i].Value, depth)
		}
	case Object:
		for _, key := range [...]string{"@value", "@list", "@set"} {
			if inner := j.Get(key); inner != nil {
				return r.valuesOf(values, inner, depth)
			}
		}
		if r.addValue() {
			values = append(values, Value{Kind: Entity, Item: r.item(j, depth)})
		}
	case String:
		if r.addValue() {
			text := decodeReferences(j.Text)
			values = append(values, Value{Kind: String, Text: text[:min(len(text), maxValue)]})
		}
	default:
		if r.addValue() {
			values = append(values, Value{Kind: j.Kind, Text: j.Text})
		}
	}
	return values
}

// maxValue bounds the kept part of a text, in bytes. It is more than any row takes, so a longer
// text makes its row fail.
const maxValue = 1 << 20

// reference matches a character reference in JSON that some systems escape as HTML. Without a
// semicolon, it may be part of an address: ?a=1&copy=2.
var reference = regexp.MustCompile(`^&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});$`)

const maxReference = 34 // bytes

func decodeReferences(s string) string {
	at := strings.IndexByte(s, '&')
	if at < 0 {
		return s
	}
	var decoded strings.Builder
	decoded.Grow(len(s))
	for ; at >= 0; at = strings.IndexByte(s, '&') {
		decoded.WriteString(s[:at])
		s = s[at:]
		n := 1
		if end := strings.IndexByte(s[:min(len(s), maxReference)], ';'); end >= 0 &&
			reference.MatchString(s[:end+1]) {
			n = end + 1
		}
		decoded.WriteString(html.UnescapeString(s[:n]))
		s = s[n:]
	}
	decoded.WriteString(s)
	return decoded.String()
}
