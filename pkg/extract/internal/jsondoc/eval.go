package jsondoc

import (
	"slices"
	"strconv"
	"strings"
)

// First returns the path's first match in the order of RFC 9535, or None.
func (p *Path) First(d *Document) Node {
	first := None
	d.walk(&p.query, Root, func(n Node) bool {
		first = n
		return false
	})
	return first
}

// All returns the path's matches, each once, in document order.
func (p *Path) All(d *Document) []Node {
	var all []Node
	seen := make([]bool, len(d.nodes))
	d.walk(&p.query, Root, func(n Node) bool {
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
		}
		return true
	})
	slices.Sort(all)
	return all
}

// step charges work; false when there was too much.
func (d *Document) step(n int) bool {
	d.steps -= n
	return d.steps >= d.check || d.look()
}

// walk visits the values that a query chooses until visit returns false.
func (d *Document) walk(q *query, current Node, visit func(Node) bool) {
	if !q.relative {
		current = Root
	}
	d.walkSegments(q.segments, current, visit)
}

// walkSegments visits the values that the segments choose from n on. It returns false if visit did,
// or if there was too much work.
func (d *Document) walkSegments(segments []segment, n Node, visit func(Node) bool) bool {
	if !d.step(1) {
		return false
	}
	if len(segments) == 0 {
		return visit(n)
	}
	s := &segments[0]
	next := func(c Node) bool { return d.walkSegments(segments[1:], c, visit) }
	for i := range s.selectors {
		if !d.choose(&s.selectors[i], n, next) {
			return false
		}
	}
	if s.descendant {
		return d.each(n, func(c Node) bool { return d.walkSegments(segments, c, visit) })
	}
	return true
}

// each visits the elements or members of n.
func (d *Document) each(n Node, visit func(Node) bool) bool {
	end := d.nodes[n].end
	for c := d.child(n+1, end); c < end; c = d.child(d.nodes[c].end, end) {
		if !d.step(1) || !visit(c) {
			return false
		}
	}
	return true
}

// choose visits the elements or members of n that a selector chooses.
func (d *Document) choose(s *selector, n Node, visit func(Node) bool) bool {
	e := &d.nodes[n]
	if e.kind != kindArray && e.kind != kindObject {
		return true
	}
	switch s.kind {
	case byWildcard:
		return d.each(n, visit)
	case byFilter:
		return d.each(n, func(c Node) bool { return !d.holds(s.filter, c) || visit(c) })
	case byName:
		if e.kind != kindObject {
			return true
		}
		found := None
		if !d.each(n, func(c Node) bool {
			if d.nodes[c].name == s.name {
				found = c
			}
			return found == None
		}) && found == None {
			return false
		}
		return found == None || visit(found)
	case byIndex:
		at := s.index
		if at < 0 {
			at += int(e.kids)
		}
		if e.kind != kindArray || at < 0 || at >= int(e.kids) {
			return true
		}
		return d.slice(n, at, at+1, 1, visit)
	default:
		if e.kind != kindArray {
			return true
		}
		from, to := s.bounds(int(e.kids))
		return d.slice(n, from, to, s.step, visit)
	}
}

// bounds returns the first index of a slice and its exclusive end.
func (s *selector) bounds(length int) (from, to int) {
	from, to = 0, length
	if s.step < 0 {
		from, to = length-1, -1
	}
	clip := func(at, least, most int) int {
		if at < 0 {
			at += length
		}
		return min(max(at, least), most)
	}
	least, most := 0, length
	if s.step < 0 {
		least, most = -1, length-1
	}
	if s.start != nil {
		from = clip(*s.start, least, most)
	}
	if s.end != nil {
		to = clip(*s.end, least, most)
	}
	return from, to
}

// slice visits the elements at from, from+step and so on, excluding to.
func (d *Document) slice(n Node, from, to, step int, visit func(Node) bool) bool {
	if step == 0 || from == to || from < to != (step > 0) {
		return true
	}
	// the range of indexes that may be chosen; last is excluded
	first, last := min(from, to+1), max(from+1, to)
	var chosen []Node
	if !d.each(n, func(c Node) bool {
		at := int(d.nodes[c].index)
		if at >= first && at < last && (at-from)%step == 0 {
			chosen = append(chosen, c)
		}
		return at+1 < last
	}) && d.steps < 0 {
		return false
	}
	for i := range chosen {
		c := chosen[i]
		if step < 0 {
			c = chosen[len(chosen)-1-i]
		}
		if !visit(c) {
			return false
		}
	}
	return true
}

// holds says whether a condition is true for the value n.
func (d *Document) holds(l *logical, n Node) bool {
	if !d.step(1) {
		return false
	}
	switch l.kind {
	case logicalOr:
		for i := range l.of {
			if d.holds(&l.of[i], n) {
				return true
			}
		}
		return false
	case logicalAnd:
		for i := range l.of {
			if !d.holds(&l.of[i], n) {
				return false
			}
		}
		return true
	case logicalNot:
		return !d.holds(&l.of[0], n)
	case logicalExists:
		found := false
		d.walk(&l.query, n, func(Node) bool {
			found = true
			return false
		})
		return found
	case logicalCompare:
		return d.compare(d.value(&l.left, n), l.op, d.value(&l.right, n))
	default:
		return d.matches(l, n)
	}
}

// value returns an operand's value; its kind is kindNothing if there is none.
func (d *Document) value(o *operand, n Node) value {
	nothing := value{kind: kindNothing, node: None}
	number := func(n int) value {
		return value{kind: kindNumber, node: None, num: float64(n), text: strconv.Itoa(n)}
	}
	switch o.kind {
	case operandLiteral:
		return o.literal
	case operandLength:
		arg := d.value(o.arg, n)
		if arg.kind == kindString {
			d.step(len(arg.text) / 16)
			return number(len([]rune(arg.text)))
		}
		if arg.node != None {
			if length := d.length(arg.node); length >= 0 {
				return number(length)
			}
		}
		return nothing
	}
	count, last := 0, None
	d.walk(&o.query, n, func(c Node) bool {
		count++
		last = c
		return o.kind != operandQuery
	})
	switch {
	case o.kind == operandCount:
		return number(count)
	case count == 1:
		return d.valueOf(last)
	}
	return nothing
}

func (d *Document) valueOf(n Node) value {
	v := value{kind: d.nodes[n].kind, node: n}
	switch v.kind {
	case kindString:
		d.step((int(d.nodes[n].to) - int(d.nodes[n].from)) / 16)
		v.text = decode(d.written(n))
	case kindNumber:
		v.text = d.written(n)
		// out of range, it is infinite as required
		v.num, _ = strconv.ParseFloat(v.text, 64)
	}
	return v
}

func (d *Document) compare(a value, op string, b value) bool {
	switch op {
	case "==":
		return d.equal(a, b)
	case "!=":
		return !d.equal(a, b)
	case "<":
		return d.less(a, b)
	case ">":
		return d.less(b, a)
	case "<=":
		return d.less(a, b) || d.equal(a, b)
	default:
		return d.less(b, a) || d.equal(a, b)
	}
}

func (d *Document) less(a, b value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case kindNumber:
		return a.num < b.num
	case kindString:
		return strings.Compare(a.text, b.text) < 0
	}
	return false
}

func (d *Document) equal(a, b value) bool {
	if a.kind != b.kind || !d.step(1) {
		return false
	}
	switch a.kind {
	case kindNumber:
		return a.num == b.num
	case kindString:
		return a.text == b.text
	case kindArray, kindObject:
		return d.equalNodes(a.node, b.node)
	}
	return true
}

// equalNodes compares two arrays or two objects.
func (d *Document) equalNodes(a, b Node) bool {
	if d.nodes[a].kids != d.nodes[b].kids {
		return false
	}
	if d.nodes[a].kind == kindArray {
		c := d.child(b+1, d.nodes[b].end)
		return d.each(a, func(n Node) bool {
			same := d.equal(d.valueOf(n), d.valueOf(c))
			c = d.child(d.nodes[c].end, d.nodes[b].end)
			return same
		})
	}
	return d.each(a, func(n Node) bool {
		other := None
		d.each(b, func(c Node) bool {
			if d.nodes[c].name == d.nodes[n].name {
				other = c
			}
			return other == None
		})
		return other != None && d.equal(d.valueOf(n), d.valueOf(other))
	})
}

// Bounds of a pattern from the body itself: its length in bytes, and its compilation in steps.
const (
	maxPattern   = 256
	patternSteps = 100_000
)

func (d *Document) matches(l *logical, n Node) bool {
	text, re := d.value(&l.left, n), l.pattern
	if l.broken || text.kind != kindString {
		return false
	}
	if re == nil {
		given := d.value(&l.right, n)
		if given.kind != kindString || len(given.text) > maxPattern || !d.step(patternSteps) {
			return false
		}
		var err error
		if re, err = compilePattern(given.text, l.whole); err != nil {
			return false
		}
	}
	if !d.step(1) {
		return false
	}
	d.budget.Reset(d.ctx, d.steps)
	found := re.Match(&d.budget, text.text)
	d.steps = d.budget.Left()
	return d.step(0) && found
}
