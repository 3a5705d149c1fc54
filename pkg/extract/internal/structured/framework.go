package structured

import (
	"encoding/json"
	"errors"
	"strings"
	"unsafe"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// minBlob is the size of JSON, in bytes, below which an attribute or a variable is not informative.
const minBlob = 16

// blobsOf returns the page's blobs and reads nothing else.
func blobsOf(root *html.Node) []Blob {
	r := reader{data: &Data{Root: root}, root: root}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			r.readBlobs(n)
		}
	}
	r.finishFlight()
	return r.data.Framework
}

// readBlobs reads an element's data for scripts: JSON in attributes, or a script itself.
func (r *reader) readBlobs(n *html.Node) {
	for i := range n.Attr {
		a := &n.Attr[i]
		if len(a.Val) > minBlob && (a.Val[0] == '{' || a.Val[0] == '[') {
			r.addJSON(Blob{Name: a.Key, JSON: a.Val, Attribute: true})
		}
	}
	if n.DataAtom == atom.Script {
		r.readScript(n)
	}
}

// readScript reads a script element: JSON-LD, JSON, or the variables that a script sets to data.
func (r *reader) readScript(n *html.Node) {
	if n.FirstChild == nil {
		return
	}
	text := n.FirstChild.Data
	name, kind := tree.Attr(n, "id"), tree.Attr(n, "type")
	media, _, _ := strings.Cut(kind, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case media == "application/ld+json":
		r.readBlock(text)
	case media == "importmap" || media == "speculationrules":
	case media == "application/json" || media == "text/x-magento-init" ||
		strings.HasSuffix(media, "+json"):
		if name == "__NUXT_DATA__" {
			text = revive(text, r.room())
		}
		r.addJSON(Blob{Name: name, JSON: text})
	case media == "" || media == "module" || strings.HasSuffix(media, "javascript"):
		r.readAssignments(text)
	}
}

// addJSON adds a blob if its text is JSON.
func (r *reader) addJSON(b Blob) {
	text := strings.TrimSpace(unwrap(b.JSON))
	if len(text) < minBlob || text[0] != '{' && text[0] != '[' {
		return
	}
	if r.parsed += len(text); r.parsed > maxParsed {
		r.data.Cut = true
		return
	}
	if b.JSON = text; isJSON(text) {
		r.addBlob(b)
	} else if v, err := ParseJSON(text); err == nil {
		b.JSON = string(v.Append(nil))
		r.addBlob(b)
	}
}

// isJSON avoids a copy, because these texts may be large.
func isJSON(text string) bool {
	return json.Valid(unsafe.Slice(unsafe.StringData(text),
		len(text)))
}

// addBlob adds a blob. Attributes leave half of the places to scripts, which have more to say.
func (r *reader) addBlob(b Blob) {
	if len(r.data.Framework) == maxBlocks || b.Attribute && r.attributes == maxBlocks/2 {
		r.data.Cut = true
		return
	}
	if b.Attribute {
		r.attributes++
	}
	r.data.Framework = append(r.data.Framework, b)
}

// readAssignments finds the variables that a script sets to data: window.NAME = {…}, var NAME =
// JSON.parse("…"), or a call that returns data.
func (r *reader) readAssignments(s string) {
	r.readFlight(s)
	for i := 0; i < len(s); {
		at := strings.IndexByte(s[i:], '=')
		if at < 0 || r.parsed > maxParsed {
			return
		}
		at += i
		i = at + 1
		value := strings.TrimLeft(s[i:], " \t\r\n")
		data := strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")
		call := strings.HasPrefix(value, callStart)
		if !data && !call && !strings.HasPrefix(value, "JSON.parse(") {
			continue
		}
		name := assigned(s[:at])
		if name == "" {
			continue
		}
		start := len(s) - len(value)
		if call {
			i = start + r.readCall(name, value)
			continue
		}
		if !data {
			start += len("JSON.parse(")
		}
		i = start + r.assignment(name, s[start:], data)
	}
}

// assignment reads a variable's value, or the string that is parsed for it. It returns how far it
// read.
func (r *reader) assignment(name, s string, data bool) int {
	p := parser{s: s, left: maxValues}
	v, err := p.value(0)
	r.parsed += p.i
	switch {
	case err != nil:
		r.data.Cut = r.data.Cut || errors.Is(err, errTooLarge)
		return 0
	case !data:
		if v.Kind == String {
			r.addJSON(Blob{Name: name, JSON: v.Text})
		}
	case p.i < minBlob || len(v.Members) == 0:
	case p.loose:
		r.addBlob(Blob{Name: name, JSON: string(v.Append(nil))})
	case isJSON(s[:p.i]):
		r.addBlob(Blob{Name: name, JSON: s[:p.i]})
	}
	return p.i
}

// assigned returns the name of the global variable before an equals sign, or "" for anything else.
func assigned(before string) string {
	before = strings.TrimRight(before, " \t\r\n")
	if inner, ok := strings.CutSuffix(before, "]"); ok && inner != "" { // window["NAME"]
		quote := inner[len(inner)-1]
		inner = inner[:len(inner)-1]
		if quote != '"' && quote != '\'' || len(inner) == 0 {
			return ""
		}
		open := strings.LastIndexByte(inner, quote)
		if open < 1 || inner[open-1] != '[' || !endsWithGlobal(inner[:open-1]) {
			return ""
		}
		return inner[open+1:]
	}
	end := len(before)
	for end > 0 && isIdentifier(before[end-1]) {
		end--
	}
	name := before[end:]
	if rest, ok := strings.CutSuffix(before[:end], "."); ok {
		if !endsWithGlobal(rest) {
			return ""
		}
		return name
	}
	switch rest := strings.TrimRight(before[:end], " \t\r\n"); {
	case len(rest) == end:
	case strings.HasSuffix(rest, "var"), strings.HasSuffix(rest, "let"),
		strings.HasSuffix(rest, "const"):
		return name
	}
	return ""
}

func endsWithGlobal(s string) bool {
	for _, global := range [...]string{"window", "self", "globalThis", "top"} {
		if rest, ok := strings.CutSuffix(s, global); ok {
			return rest == "" || !isIdentifier(rest[len(rest)-1]) && rest[len(rest)-1] != '.'
		}
	}
	return false
}

func isIdentifier(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' ||
		c == '$'
}

// flightPush marks Next.js's streamed data: strings that together form lines of id:JSON.
const flightPush = "__next_f.push("

func (r *reader) readFlight(s string) {
	for {
		_, after, found := strings.Cut(s, flightPush)
		if !found || r.parsed > maxParsed {
			return
		}
		p := parser{s: after, left: 16}
		v, err := p.value(0)
		r.parsed += p.i
		if err == nil && v.Kind == Array && len(v.Members) == 2 &&
			v.Members[1].Value.Kind == String {
			r.flight = append(r.flight, v.Members[1].Value.Text)
		}
		s = after[p.i:]
	}
}

// finishFlight adds the streamed data as one array.
func (r *reader) finishFlight() {
	var all strings.Builder
	flight := strings.Join(r.flight, "")
	for line := range strings.Lines(flight) {
		_, text, _ := strings.Cut(line, ":")
		if text = strings.TrimSpace(text); len(text) < minBlob || text[0] != '{' &&
			text[0] != '[' || !isJSON(text) {
			continue
		}
		if all.Len() == 0 {
			all.Grow(len(flight) + len("[]"))
		}
		all.WriteByte("[,"[min(all.Len(), 1)])
		all.WriteString(text)
	}
	if all.Len() > 0 {
		all.WriteByte(']')
		r.addBlob(Blob{Name: "__next_f", JSON: all.String()})
	}
}
