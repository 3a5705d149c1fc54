package structured

import (
	"errors"
	"regexp"
	"strings"
)

// callStart is how a call that returns data begins. Nuxt 2 writes one if values repeat:
// (function(a,b){return {x:a,y:[a,b]}}("often",2)).
const callStart = "(function("

var callHead = regexp.MustCompile(`^\(function\(([\w$,]*)\)\{return\s*`)

// readCall adds the data that a call returns, with the call's values in place of the names. It
// returns how far it read.
func (r *reader) readCall(name, s string) int {
	head := callHead.FindStringSubmatch(s)
	if head == nil {
		return 0
	}
	start := len(head[0])
	p := parser{s: s, i: start, left: maxValues, room: r.room(), bound: map[string]JSON{}}
	names := strings.FieldsFunc(head[1], func(c rune) bool { return c == ',' })
	for _, n := range names {
		p.bound[n] = JSON{} // the values follow the data, whose end is found first
	}
	_, err := p.value(0)
	p.space()
	if err == nil && !strings.HasPrefix(s[p.i:], "}(") {
		err = errNotJSON
	}
	end := p.i
	var v JSON
	if err == nil {
		p.i++
		var values JSON
		values, err = p.members(JSON{Kind: Array}, ')', 0)
		for i := range values.Members[:min(len(values.Members), len(names))] {
			if v := values.Members[i].Value; len(v.Members) == 0 { // others may repeat too often
				p.bound[names[i]] = v
			}
		}
		end = p.i
	}
	if err == nil {
		p.i, p.left = start, maxValues
		v, err = p.value(0)
	}
	r.parsed += 2 * end
	switch {
	case err != nil:
		r.data.Cut = r.data.Cut || errors.Is(err, errTooLarge)
		return 0
	case len(v.Members) > 0:
		b := Blob{Name: name, JSON: string(v.Append(nil))}
		r.parsed += len(b.JSON) // which may be far longer than the call
		r.addBlob(b)
	}
	return end
}

// writtenSize returns nearly as many bytes as a text takes in JSON: a control character takes six.
func writtenSize(text string) int {
	size := len(text)
	for i := range len(text) {
		if text[i] < ' ' {
			size += 5
		}
	}
	return size
}

// room returns how many more bytes of data a page may have.
func (r *reader) room() int { return max(0, maxParsed-r.parsed) }

// revive decodes Nuxt 3's data format: one array of values, in which objects and arrays hold the
// indexes of others. It returns any other text unchanged. Values that take more than room, in
// bytes, are left out.
func revive(text string, room int) string {
	flat, err := ParseJSON(text)
	if err != nil || flat.Kind != Array || len(flat.Members) == 0 {
		return text
	}
	v := reviver{flat: flat.Members, left: maxValues, room: room}
	root := v.at("0", 0)
	return string(root.Append(nil))
}

type reviver struct {
	flat []Member
	left int // number of values that may follow
	room int // bytes of text that may follow, because values repeat
}

// at returns the value at an index.
func (v *reviver) at(place string, depth int) JSON {
	index := 0
	for _, c := range []byte(place) {
		if c < '0' || c > '9' || index > len(v.flat) {
			return JSON{} // -1 and the like: undefined
		}
		index = 10*index + int(c-'0')
	}
	if v.left--; v.left < 0 || depth > maxDepth || place == "" || index >= len(v.flat) {
		return JSON{}
	}
	flat := &v.flat[index].Value
	if flat.Kind != Array && flat.Kind != Object {
		if v.room -= writtenSize(flat.Text); v.room < 0 {
			return JSON{}
		}
		return *flat
	}
	if flat.Kind == Array && len(flat.Members) > 0 && flat.Members[0].Value.Kind == String {
		return v.tagged(flat.Members, depth)
	}
	whole := JSON{Kind: flat.Kind, Members: make([]Member, 0, min(len(flat.Members), v.left+1))}
	for i := range flat.Members {
		m := &flat.Members[i]
		if v.room -= writtenSize(m.Name); v.left < 0 || v.room < 0 {
			break
		}
		whole.Members = append(whole.Members, Member{m.Name, v.at(m.Value.Text, depth+1)})
	}
	return whole
}

// tagged returns a value of a type that JSON lacks.
func (v *reviver) tagged(parts []Member, depth int) JSON {
	if len(parts) < 2 {
		return JSON{}
	}
	switch second := parts[1].Value; parts[0].Value.Text {
	case "Date", "BigInt":
		if second.Kind == Number {
			return v.at(second.Text, depth+1)
		}
		return second
	case "Set":
		set := JSON{Kind: Array}
		for i := range parts[1:] {
			set.Members = append(set.Members, Member{Value: v.at(parts[i+1].Value.Text, depth+1)})
		}
		return set
	case "Map", "null", "RegExp", "NuxtError":
		return JSON{}
	default: // Reactive, ShallowReactive, Ref, ShallowRef, EmptyRef, Island …
		return v.at(second.Text, depth+1)
	}
}
