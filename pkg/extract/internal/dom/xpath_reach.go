package dom

import (
	"slices"
)

// across are the axes that lead from each node across the page. What asks every node for all of
// them would look at each pair.
var across = []string{"following", "following-sibling", "preceding", "preceding-sibling"}

// maxReach bounds what reaches of one document take together, in numbers of four bytes.
const maxReach = 4 << 20

// reach is all of a document that meets a step's test. How many there are along an axis from a
// node, and which is the last of them, is looked up in it.
type reach struct {
	all []int32 // in document order
	// by node, on axes of siblings alone
	before, within []int32 // how many are siblings before it, and how many its children
	first, last    []int32 // its first and last child of them, 0 for none
}

// reachOf is the reach of a step across the page that has no filter, or last() alone. Nil: another
// step, or one that is asked for the first time; who asks once goes the way.
func (v *evaluation) reachOf(s *step) *reach {
	if !s.counted {
		return nil
	}
	x := &v.d.xpath
	r, asked := x.reaches[s]
	switch {
	case r != nil:
		return r
	case !asked:
		if x.reaches == nil {
			x.reaches = map[*step]*reach{}
		}
		x.reaches[s] = nil
		return nil
	}
	size := len(x.nodes)
	if s.siblings {
		size *= 3
	}
	if x.reached += size; x.reached > maxReach {
		x.reached = maxReach
		return nil
	}
	r = v.d.makeReach(s)
	x.reaches[s] = r
	return r
}

func (d *Document) makeReach(s *step) *reach {
	r, nodes := &reach{}, d.xpath.nodes
	column := func(wanted bool) []int32 {
		if !wanted {
			return nil
		}
		return make([]int32, len(nodes))
	}
	counts, ends := s.siblings && !s.placed, s.siblings && s.placed
	r.before, r.within = column(counts), column(counts)
	r.first, r.last = column(ends), column(ends)
	d.spend(len(nodes))
	for i := range nodes[1:] {
		at := int32(i + 1)
		parent, met := nodes[at].parent, d.meets(s, spot{at, -1})
		if counts {
			r.before[at] = r.within[parent]
		}
		switch {
		case !met:
		case counts:
			r.all = append(r.all, at)
			r.within[parent]++
		case ends:
			if r.last[parent] = at; r.first[parent] == 0 {
				r.first[parent] = at
			}
		default:
			r.all = append(r.all, at)
		}
	}
	return r
}

// count is how many nodes a step leads to from p.
func (r *reach) count(d *Document, s *step, p spot) int {
	d.spend(moveSteps)
	parent := d.xpath.nodes[p.node].parent
	switch {
	case s.siblings && (p.attr >= 0 || parent < 0):
		return 0
	case s.axis == "preceding-sibling":
		return int(r.before[p.node])
	case s.axis == "following-sibling":
		count := int(r.within[parent] - r.before[p.node])
		if r.has(p.node) {
			count--
		}
		return count
	case s.axis == "following":
		at, _ := slices.BinarySearch(r.all, d.behind(p))
		return len(r.all) - at
	}
	count, _ := slices.BinarySearch(r.all, p.node)
	for at := parent; at >= 0; at = d.xpath.nodes[at].parent {
		if d.spend(1); r.has(at) {
			count--
		}
	}
	return count
}

func (r *reach) has(node int32) bool {
	_, found := slices.BinarySearch(r.all, node)
	return found
}

// behind is the first node that follows p.
func (d *Document) behind(p spot) int32 {
	if p.attr >= 0 {
		return p.node + 1
	}
	return d.xpath.nodes[p.node].end
}

// lastFrom is the last node that a step leads to from p, as its axis goes.
func (r *reach) lastFrom(d *Document, s *step, p spot) (last spot, found bool) {
	d.spend(moveSteps)
	nodes := d.xpath.nodes
	parent, at := nodes[p.node].parent, int32(0)
	switch {
	case s.siblings && (p.attr >= 0 || parent < 0):
	case s.axis == "preceding-sibling":
		if at = r.first[parent]; at >= p.node {
			at = 0
		}
	case s.axis == "following-sibling":
		if at = r.last[parent]; at <= p.node {
			at = 0
		}
	case s.axis == "following":
		if n := len(r.all); n > 0 && r.all[n-1] >= d.behind(p) {
			at = r.all[n-1]
		}
	default:
		for _, first := range r.all { // those before it that do not precede it hold it
			d.spend(1)
			if first >= p.node {
				break
			}
			if nodes[first].end <= p.node {
				at = first
				break
			}
		}
	}
	return spot{at, -1}, at > 0
}

// nested takes a step whose filters ask for places from each of many nodes, on the axes that lead
// across the whole page. From two nodes it leads to the same nodes, in the same places, when it
// leads to as many. So filters are asked once for each number, and not for each node. Not known:
// the step goes another way.
func (v *evaluation) nested(s *step, from []spot) (all []spot, known bool) {
	first := s.filters[0]
	if len(from) < 2 || s.counted || s.axis != "following" && s.axis != "preceding" ||
		first.op == "" && first.kind == isNumber {
		return nil, false
	}
	r := v.d.makeReach(&step{axis: s.axis, test: s.test})
	asked := map[int]bool{}
	for _, p := range from {
		n := r.count(v.d, s, p)
		if n == 0 || asked[n] {
			continue
		}
		asked[n] = true
		all = v.filtered(s, r.from(v.d, s, p, n), all)
	}
	return all, true
}

// from is what a step leads to from p, n nodes, in the order of its axis.
func (r *reach) from(d *Document, s *step, p spot, n int) []spot {
	found := make([]spot, 0, n)
	if s.axis == "following" {
		for _, at := range r.all[len(r.all)-n:] {
			d.spend(1)
			found = append(found, spot{at, -1})
		}
		return found
	}
	behind, _ := slices.BinarySearch(r.all, p.node)
	for i := behind - 1; i >= 0; i-- {
		if d.spend(1); d.xpath.nodes[r.all[i]].end <= p.node {
			found = append(found, spot{r.all[i], -1})
		}
	}
	return found
}
