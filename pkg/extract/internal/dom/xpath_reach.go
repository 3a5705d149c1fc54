package dom

import (
	"slices"
)

// across are the axes that lead from each node across the page, or deep into it. Walking them from
// every node would examine each pair of nodes.
var across = []string{"descendant", "following", "following-sibling", "preceding",
	"preceding-sibling"}

// maxReach bounds the total size of a document's reaches, in numbers of four bytes.
const maxReach = 4 << 20

// reach holds all nodes of a document that pass a step's test and filters. It serves to look up how
// many of them lie along an axis from a node, and which is the last.
type reach struct {
	all []int32 // in document order; empty on sibling axes
	// by node, on sibling axes only: whether its children have been examined
	known       []bool
	upTo        []int32 // number of such siblings up to and including it
	within      []int32 // number of its such children
	first, last []int32 // its first and last such child, 0 for none
}

// way is the record of a step's evaluation in a document.
type way struct {
	spent int // steps of the budget spent on walking
	reach *reach
}

// reachOf returns the reach of a step across the page that depends on no positions or on last()
// alone. It is nil for another step, or if walking has cost less than examining each node would.
func (v *evaluation) reachOf(s *step) *reach {
	if !s.counted {
		return nil
	}
	x := &v.d.xpath
	w := x.ways[s]
	if w == nil || w.spent < len(x.nodes) {
		return nil
	}
	if w.reach == nil {
		size := len(x.nodes)
		if s.siblings {
			size *= 3
		}
		if x.reached+size > maxReach {
			x.reached = maxReach
			return nil
		}
		x.reached += size
		w.reach = v.makeReach(s)
	}
	return w.reach
}

// went records the cost of walking a step; the budget was before.
func (v *evaluation) went(s *step, before int) {
	if !s.counted {
		return
	}
	x := &v.d.xpath
	if x.ways == nil {
		x.ways = map[*step]*way{}
	}
	if x.ways[s] == nil {
		x.ways[s] = &way{}
	}
	x.ways[s].spent += before - v.d.steps
}

func (v *evaluation) makeReach(s *step) *reach {
	r, nodes := &reach{}, v.d.xpath.nodes
	v.d.spend(len(nodes))
	switch {
	case s.siblings && s.placed:
		r.first, r.last = make([]int32, len(nodes)), make([]int32, len(nodes))
	case s.siblings:
		r.upTo, r.within = make([]int32, len(nodes)), make([]int32, len(nodes))
	default:
		told := v.toldOf(s)
		for i := range nodes[1:] {
			p := spot{int32(i + 1), -1}
			if v.d.meets(s, p) && (s.placed || v.passes(s, told, p)) {
				r.all = append(r.all, p.node)
			}
		}
		return r
	}
	r.known = make([]bool, len(nodes))
	return r
}

// know examines the children of a node, once. Filters are evaluated only on children of such nodes.
func (r *reach) know(v *evaluation, s *step, parent int32) {
	if r.known[parent] {
		return
	}
	r.known[parent] = true
	told := v.toldOf(s)
	v.d.along("child", spot{parent, -1}, func(p spot) bool {
		met := v.d.meets(s, p) && (s.placed || v.passes(s, told, p))
		switch {
		case met && s.placed:
			if r.last[parent] = p.node; r.first[parent] == 0 {
				r.first[parent] = p.node
			}
		case met:
			r.within[parent]++
		}
		if !s.placed {
			r.upTo[p.node] = r.within[parent]
		}
		return true
	})
}

// count returns the number of nodes that a step leads to from p.
func (r *reach) count(v *evaluation, s *step, p spot) int {
	d := v.d
	d.spend(moveSteps)
	n := &d.xpath.nodes[p.node]
	switch {
	case s.siblings && (p.attr >= 0 || n.parent < 0):
		return 0
	case s.siblings:
		r.know(v, s, n.parent)
	}
	switch s.axis {
	case "preceding-sibling":
		if n.before < 0 {
			return 0
		}
		return int(r.upTo[n.before])
	case "following-sibling":
		return int(r.within[n.parent] - r.upTo[p.node])
	case "descendant":
		return r.below(d.behind(p)) - r.below(p.node+1)
	case "following":
		return len(r.all) - r.below(d.behind(p))
	}
	count := r.below(p.node)
	for at := n.parent; at >= 0; at = d.xpath.nodes[at].parent {
		if d.spend(1); r.has(at) {
			count--
		}
	}
	return count
}

// below returns the number of nodes before a node.
func (r *reach) below(node int32) int {
	at, _ := slices.BinarySearch(r.all, node)
	return at
}

func (r *reach) has(node int32) bool {
	_, found := slices.BinarySearch(r.all, node)
	return found
}

// behind returns the first node after p and its descendants.
func (d *Document) behind(p spot) int32 {
	if p.attr >= 0 {
		return p.node + 1
	}
	return d.xpath.nodes[p.node].end
}

// lastFrom returns the last node, in axis order, that a step leads to from p.
func (r *reach) lastFrom(v *evaluation, s *step, p spot) (last spot, found bool) {
	d, nodes := v.d, v.d.xpath.nodes
	d.spend(moveSteps)
	parent, at := nodes[p.node].parent, int32(0)
	if s.siblings {
		if p.attr >= 0 || parent < 0 {
			return spot{}, false
		}
		r.know(v, s, parent)
	}
	switch {
	case s.axis == "preceding-sibling":
		if at = r.first[parent]; at >= p.node {
			at = 0
		}
	case s.axis == "following-sibling":
		if at = r.last[parent]; at <= p.node {
			at = 0
		}
	case s.axis == "descendant":
		if n := r.below(d.behind(p)); n > 0 && r.all[n-1] > p.node {
			at = r.all[n-1]
		}
	case s.axis == "following":
		if n := len(r.all); n > 0 && r.all[n-1] >= d.behind(p) {
			at = r.all[n-1]
		}
	default:
		for _, first := range r.all { // nodes before p that do not precede it are its ancestors
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

// nested evaluates a step whose filters depend on positions, from many nodes, on an axis across the
// whole page. From two nodes with equally many results, the step leads to the same nodes in the
// same positions. So filters are evaluated once for each number of results instead of for each
// node. known is false if the step must be evaluated otherwise.
func (v *evaluation) nested(s *step, from []spot) (all []spot, known bool) {
	first := s.filters[0]
	if len(from) < 2 || s.counted || s.axis != "following" && s.axis != "preceding" ||
		first.op == "" && first.kind == isNumber {
		return nil, false
	}
	r := v.makeReach(&step{axis: s.axis, test: s.test})
	asked := map[int]bool{}
	for _, p := range from {
		n := r.count(v, s, p)
		if n == 0 || asked[n] {
			continue
		}
		asked[n] = true
		all = v.filtered(s, r.from(v.d, s, p, n), all)
	}
	return all, true
}

// from returns the n nodes that a step leads to from p, in axis order.
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
