// Package jsondoc owns JSON bodies and JSONPath (RFC 9535). A body is a flat list of values in
// document order, so that a value is a number and its descendants are a range. jsondoc knows
// neither fields nor rows.
//
// Our own code parses and evaluates paths; tests compare it with github.com/theory/jsonpath. That
// library works on Go's maps and visits the members of an object in random order. The first match
// of a path would therefore vary. The library also writes large numbers differently, and nothing
// bounds the cost of a path.
package jsondoc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/turns"
)

// Node is a value of a document: its index in document order.
type Node int32

// Root is the outermost value, which every document has.
const (
	None Node = -1
	Root Node = 0
)

// Document is a parsed body. The next Parse reuses its memory. The body's bytes must not change
// until Reset.
type Document struct {
	src   string
	nodes []node
	steps int             // work left for paths
	names map[string]Node // of the object whose end is being read
	lines bool            // src has one value per line

	check  int // when steps fall below this, the context is checked
	ctx    context.Context
	budget pattern.Budget // of the current match
	ended  error          // ctx's error
}

// node is one value. Its descendants are the values up to end.
type node struct {
	name        string // decoded name of a member
	parent, end Node
	from, to    int32 // in src
	kids        int32 // number of elements or members
	index       int32 // position in an array
	kind        kind
	member      bool
	dropped     bool // a later member of the same object has its name
}

type kind uint8

const (
	kindNothing kind = iota // the result of a path to nowhere
	kindNull
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// Bounds of a body. Paths that need more than maxSteps steps are given up; ordinary paths need some
// thousand.
const (
	maxDepth = 500
	maxNodes = 500_000
	maxSteps = 20_000_000
)

var (
	errTooLong = errors.New("the body is too long")
	errTooDeep = errors.New("more than " + strconv.Itoa(maxDepth) + " nested values")
	errTooMany = errors.New("more than " + strconv.Itoa(maxNodes) + " values")
	errTooSlow = errors.New("the paths take too long on this body")
)

// Parse reads a body: one JSON value or, with lines, one value per line. The values of lines become
// the elements of an array.
func (d *Document) Parse(body []byte, lines bool) error {
	if len(body) > math.MaxInt32 {
		return errTooLong
	}
	d.Reset()
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	// The caller keeps the bytes unchanged until Reset, so names and values may point into them.
	d.src, d.lines = unsafe.String(unsafe.SliceData(body), len(body)), lines
	if lines {
		return d.readLines(body)
	}
	if err := check(body); err != nil {
		return err
	}
	_, err := d.read(None, space(d.src, 0), 0)
	return err
}

// check returns the error of an invalid JSON text, so that read need not check.
func check(text []byte) error {
	if json.Valid(text) {
		return nil
	}
	var v json.RawMessage
	return json.Unmarshal(text, &v)
}

func (d *Document) readLines(body []byte) error {
	d.nodes = append(d.nodes, node{parent: None, to: int32(len(body)), kind: kindArray})
	at := 0
	for line := range bytes.Lines(body) {
		start := at
		at += len(line)
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := check(line); err != nil {
			return err
		}
		e := Node(len(d.nodes))
		if _, err := d.read(Root, space(d.src, start), 1); err != nil {
			return err
		}
		d.nodes[e].index = d.nodes[Root].kids
		d.nodes[Root].kids++
	}
	d.nodes[Root].end = Node(len(d.nodes))
	return nil
}

// space returns the first index from i on that is not white space.
func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// reserve makes room for the values from i on, so that a large body's list is not copied repeatedly
// as it grows. It overestimates the number of values, up to maxNodes.
func (d *Document) reserve(i int) {
	more, s := 1, d.src
	for ; i < len(s); i++ {
		switch s[i] {
		case ',', '[', '{':
			more++
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
	}
	room := make([]node, len(d.nodes), min(len(d.nodes)+more, maxNodes))
	copy(room, d.nodes)
	d.nodes = room
}

// read adds the value that begins at i and returns the index after it. The text is valid JSON.
func (d *Document) read(parent Node, i, depth int) (int, error) {
	n := Node(len(d.nodes))
	if len(d.nodes) == cap(d.nodes) && n >= keptNodes/2 {
		d.reserve(i)
	}
	if depth > maxDepth {
		return 0, errTooDeep
	}
	if len(d.nodes) == maxNodes {
		return 0, errTooMany
	}
	d.nodes = append(d.nodes, node{parent: parent, from: int32(i)})
	var err error
	k := kindNumber
	switch d.src[i] {
	case '{':
		k = kindObject
		i, err = d.readMembers(n, i+1, depth)
	case '[':
		k = kindArray
		i, err = d.readElements(n, i+1, depth)
	case '"':
		k = kindString
		i = stringEnd(d.src, i)
	case 'n':
		k = kindNull
		i += len("null")
	case 't':
		k = kindTrue
		i += len("true")
	case 'f':
		k = kindFalse
		i += len("false")
	default:
		for i < len(d.src) && strings.IndexByte("+-.0123456789eE", d.src[i]) >= 0 {
			i++
		}
	}
	e := &d.nodes[n]
	e.kind, e.to, e.end = k, int32(i), Node(len(d.nodes))
	return i, err
}

func (d *Document) readElements(parent Node, i, depth int) (int, error) {
	for index := int32(0); ; index++ {
		if i = space(d.src, i); d.src[i] == ']' {
			d.nodes[parent].kids = index
			return i + 1, nil
		}
		if d.src[i] == ',' {
			i = space(d.src, i+1)
		}
		e := Node(len(d.nodes))
		var err error
		if i, err = d.read(parent, i, depth+1); err != nil {
			return 0, err
		}
		d.nodes[e].index = index
	}
}

func (d *Document) readMembers(parent Node, i, depth int) (int, error) {
	for kids := int32(0); ; kids++ {
		if i = space(d.src, i); d.src[i] == '}' {
			d.nodes[parent].kids = kids
			d.dropRepeated(parent)
			return i + 1, nil
		}
		if d.src[i] == ',' {
			i = space(d.src, i+1)
		}
		nameEnd := stringEnd(d.src, i)
		name := decode(d.src[i:nameEnd])
		e := Node(len(d.nodes))
		var err error
		if i, err = d.read(parent, space(d.src, space(d.src, nameEnd)+1), depth+1); err != nil {
			return 0, err
		}
		d.nodes[e].name, d.nodes[e].member = name, true
	}
}

// dropRepeated keeps only the last of an object's members with the same name, as browsers do.
func (d *Document) dropRepeated(object Node) {
	if d.nodes[object].kids < 2 {
		return
	}
	if d.names == nil {
		d.names = make(map[string]Node)
	}
	clear(d.names)
	for c := object + 1; c < Node(len(d.nodes)); c = d.nodes[c].end {
		if earlier, ok := d.names[d.nodes[c].name]; ok {
			d.nodes[earlier].dropped = true
			d.nodes[object].kids--
		}
		d.names[d.nodes[c].name] = c
	}
}

// stringEnd returns the index after the string that begins at i.
func stringEnd(s string, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// decode returns the text of a quoted string.
func decode(quoted string) string {
	inner := quoted[1 : len(quoted)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	if err := json.Unmarshal([]byte(quoted), &s); err != nil {
		return inner // cannot happen: the text is valid JSON
	}
	return s
}

// checkEvery is the number of steps between checks of the context, at which others may go first.
const checkEvery = 1_000_000

// Within ends the work of paths when the context ends, for all bodies parsed from now on.
func (d *Document) Within(ctx context.Context) { d.ctx = ctx }

// look says whether paths may continue: there are steps left, and the context has not ended.
func (d *Document) look() bool {
	if err := turns.Yield(d.ctx); err != nil {
		d.ended, d.steps = err, -1
	}
	d.check = max(0, d.steps-checkEvery)
	return d.steps >= 0
}

// Err says that the paths asked so far took too long, or returns the context's error. Their results
// then do not count.
func (d *Document) Err() error {
	if d.ended != nil {
		return d.ended
	}
	if d.steps < 0 {
		return errTooSlow
	}
	return nil
}

// keptNodes bounds the memory kept for the next body.
const keptNodes = 1 << 14

// Reset discards the body and keeps the memory of an ordinary one.
func (d *Document) Reset() {
	if cap(d.nodes) > keptNodes || len(d.names) > keptNodes {
		*d = Document{ctx: d.ctx}
	}
	if d.ctx == nil {
		d.ctx = context.Background()
	}
	clear(d.nodes)
	clear(d.names)
	d.src, d.nodes, d.steps, d.check, d.ended = "", d.nodes[:0], maxSteps, maxSteps, nil
}

// GoesOn says whether rows may still be made. After false, results do not count; see Err.
func (d *Document) GoesOn() bool { return d.step(0) }

// Parent returns the array or object around n, None for the root.
func (d *Document) Parent(n Node) Node { return d.nodes[n].parent }

// End returns the first value after n and its descendants.
func (d *Document) End(n Node) Node { return d.nodes[n].end }

// child returns the first element or member from c on that is not dropped, or end. Each skipped one
// costs a step.
func (d *Document) child(c, end Node) Node {
	for c < end && d.nodes[c].dropped {
		d.steps--
		c = d.nodes[c].end
	}
	return c
}

// IsNull says whether the value is null.
func (d *Document) IsNull(n Node) bool { return d.nodes[n].kind == kindNull }

// String returns a string's text, or a number as written; false for other values.
func (d *Document) String(n Node) (string, bool) {
	switch d.nodes[n].kind {
	case kindString:
		return decode(d.written(n)), true
	case kindNumber:
		return d.written(n), true
	}
	return "", false
}

func (d *Document) written(n Node) string { return d.src[d.nodes[n].from:d.nodes[n].to] }

// AppendJSON appends a value as JSON without white space: numbers exactly as written, members in
// their order, strings by quote. It stops once dst is longer than most; the result is then not
// valid JSON.
func (d *Document) AppendJSON(dst []byte, n Node, most int,
	quote func(dst, s []byte) []byte) []byte {
	e := &d.nodes[n]
	str := func(s string) { dst = quote(dst, unsafe.Slice(unsafe.StringData(s), len(s))) }
	switch e.kind {
	case kindString:
		str(decode(d.written(n)))
	case kindObject, kindArray:
		brackets := "[]"
		if e.kind == kindObject {
			brackets = "{}"
		}
		dst = append(dst, brackets[0])
		first := d.child(n+1, e.end)
		for c := first; c < e.end && len(dst) <= most; c = d.child(d.nodes[c].end, e.end) {
			if c > first {
				dst = append(dst, ',')
			}
			if d.nodes[c].member {
				str(d.nodes[c].name)
				dst = append(dst, ':')
			}
			dst = d.AppendJSON(dst, c, most, quote)
		}
		dst = append(dst, brackets[1])
	default:
		dst = append(dst, d.written(n)...)
	}
	return dst
}

// length is the function length(): characters, elements or members; -1 for other values.
func (d *Document) length(n Node) int {
	switch d.nodes[n].kind {
	case kindString:
		return utf8.RuneCountInString(decode(d.written(n)))
	case kindArray, kindObject:
		return int(d.nodes[n].kids)
	}
	return -1
}
