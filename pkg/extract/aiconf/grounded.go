package aiconf

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"shoal.dev/shoal/pkg/jsontext"
)

// A model may answer with values that the page does not have, so answers are checked. A text must
// be on the page, sentence by sentence, regardless of case, white space and punctuation. A number
// must be there in some notation. An address must be one of the page's. For a date, its year and
// its day must be there. Values that the model must rephrase cannot be checked and are accepted: a
// boolean, an entry of an enumeration, a currency code, an availability.

// ground is the page shown to the model, in comparable form.
type ground struct {
	links string // the page as the model saw it
	// its words, with a space around each: with the addresses of links and pictures, and without
	words   [2]string
	letters [2]string // in normal form, with and without them
	numbers map[float64]bool
	parts   map[string]bool // runs of digits without leading zeros
}

// ground prepares the page once.
func (r *reader) ground() *ground {
	if r.shownTo != nil {
		return r.shownTo
	}
	g := &ground{numbers: map[float64]bool{}, parts: map[string]bool{}}
	g.links = r.page.URL + "\n" + r.data.Title + "\n" + r.markdown()
	plain := r.data.Title
	if r.data.Root != nil {
		plain += "\n" + shownText(r.data.Root, maxMarkdown)
	}
	for i, text := range [...]string{g.links, plain} {
		g.words[i], g.letters[i] = " "+spaced(text)+" ", normal(text)
	}
	for _, written := range digits.FindAllString(g.links, -1) {
		for _, f := range [...]form{money, quantity, count} {
			for _, machine := range [...]bool{false, true} {
				if n, err := strconv.ParseFloat(number(written, f, r.amounts(machine), false),
					64); err == nil {
					g.numbers[n] = true
				}
			}
		}
		for part := range strings.FieldsFuncSeq(written,
			func(c rune) bool { return !unicode.IsDigit(c) }) {
			g.parts[strings.TrimLeft(part, "0")] = true
		}
	}
	// sums in special notation: 5€50
	for line := range strings.SplitSeq(g.links, "\n") {
		if n, err := strconv.ParseFloat(number(line, money, r.amounts(false), false),
			64); err == nil {
			g.numbers[n] = true
		}
	}
	r.shownTo = g
	return g
}

// grounded returns an answer's value without what the page does not have; nil if nothing is left.
func (r *reader) grounded(f *field, value json.RawMessage) json.RawMessage {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || f == nil {
		return value
	}
	switch value[0] {
	case '"':
		var text string
		if json.Unmarshal(value, &text) != nil || !r.hasText(f, text) {
			return nil
		}
	case '[':
		return r.groundedList(f, value)
	case '{':
		return r.groundedObject(f, value)
	case 't', 'f', 'n':
	default:
		n, err := strconv.ParseFloat(string(value), 64)
		if err != nil || len(f.Enum) == 0 && !r.ground().numbers[n] && !r.ground().numbers[-n] {
			return nil
		}
	}
	return value
}

func (r *reader) groundedList(f *field, value json.RawMessage) json.RawMessage {
	var parts []json.RawMessage
	if json.Unmarshal(value, &parts) != nil {
		return nil
	}
	element := f.element
	if element == nil {
		element = &field{kind: f.kind, concept: f.concept}
	}
	out := []byte{'['}
	for _, part := range parts {
		if part = r.grounded(element, part); part == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, part...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}

// groundedObject drops members that the schema does not name, because they cannot be checked.
func (r *reader) groundedObject(f *field, value json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	out := []byte{'{'}
	for i := range f.members {
		m := &f.members[i]
		member := members[m.Name]
		if member != nil {
			member = r.grounded(m, member)
		}
		if member == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsontext.AppendString(out, m.Name), ':'), member...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, '}')
}

// hasText says whether the page has the text of a field's value.
func (r *reader) hasText(f *field, text string) bool {
	g := r.ground()
	switch {
	case text == "" || len(f.Enum) > 0 || f.kind == currency || f.kind == stock:
		return true
	case f.kind == link || strings.HasPrefix(f.Format, "ur") || strings.HasPrefix(f.Format, "iri"):
		return strings.Contains(g.links, text)
	case (f.kind == date || strings.HasPrefix(f.Format, "date")) && isoDate.MatchString(text):
		return g.parts[text[:4]] && g.parts[strings.TrimLeft(text[8:10], "0")]
	}
	for sentence := range strings.FieldsFuncSeq(text,
		func(c rune) bool { return strings.ContainsRune(".!?\n;", c) }) {
		if !g.has(sentence) {
			return false
		}
	}
	return true
}

// minJoined is the number of letters and digits from which a text that differs in white space is
// not merely part of other words.
const minJoined = 6

// has says whether the page has a text as whole words, or its letters if they are enough.
func (g *ground) has(text string) bool {
	words, letters := spaced(text), normal(text)
	for i := range g.words {
		if strings.Contains(g.words[i], " "+words+" ") || len(letters) >= minJoined &&
			strings.Contains(g.letters[i], letters) {
			return true
		}
	}
	return letters == ""
}

// spaced returns a text's words in lower case, separated by single spaces.
func spaced(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text),
		func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }), " ")
}
