package dom

// maxVerdicts bounds the total size of one evaluation's verdicts, in bytes.
const maxVerdicts = 4 << 20

// verdicts caches the results of filters on nodes. Steps across the page come to a node from many
// others, and a filter that depends on no positions gives the same result every time.
type verdicts struct {
	said map[*expression]verdict // nil: asked once
	size int
	// numeric results of parts of filters
	numbers map[numberOf]float64
}

type numberOf struct {
	part *expression
	node int32
}

const numberBytes = 64 // approximate size of one entry of numbers

// verdict holds a filter's results by node: 0 for none yet, else one of these. Nil stores none.
type verdict []byte

const (
	fails  = 1
	passes = 2
)

// meeting says that steps on the axis from different nodes may reach the same node.
func (s *step) meeting() bool {
	switch s.axis {
	case "self", "attribute", "child":
		return false
	}
	return true
}

// toldOf returns the verdicts of a step's filters, nil if there are none.
func (v *evaluation) toldOf(s *step) []verdict {
	if len(s.filters) == 0 || !s.meeting() {
		return nil
	}
	told := make([]verdict, len(s.filters))
	for i, filter := range s.filters {
		told[i] = v.told.of(filter, len(v.d.xpath.nodes))
	}
	return told
}

// of returns a filter's verdict. Results are kept from its second evaluation on.
func (v *verdicts) of(filter *expression, nodes int) verdict {
	if filter.kind == isNumber || filter.position {
		return nil
	}
	if v.said == nil {
		v.said = map[*expression]verdict{}
	}
	said, asked := v.said[filter]
	if !asked {
		v.said[filter] = nil
	}
	if said != nil || !asked || v.size+nodes > maxVerdicts {
		return said
	}
	v.size += nodes
	v.said[filter] = make(verdict, nodes)
	return v.said[filter]
}

// about returns a node's stored result. Results for attributes are not stored.
func (v verdict) about(p spot) (passed, known bool) {
	if v == nil || p.attr >= 0 {
		return false, false
	}
	return v[p.node] == passes, v[p.node] != 0
}

func (v verdict) keep(p spot, passed bool) {
	switch {
	case v == nil || p.attr >= 0:
	case passed:
		v[p.node] = passes
	default:
		v[p.node] = fails
	}
}

// part says whether a part of a filter holds. A part that depends on no positions is evaluated once
// for a node, even if the whole filter depends on them.
func (v *evaluation) part(e *expression, f focus) bool {
	if !f.again || e.position {
		return v.truth(e, f)
	}
	told := v.told.of(e, len(v.d.xpath.nodes))
	passed, known := told.about(f.at)
	if !known {
		passed = v.truth(e, f)
		told.keep(f.at, passed)
	}
	return passed
}

// operand returns a side of a comparison, or a position. Numbers that depend on no positions are
// read once for a node.
func (v *evaluation) operand(e *expression, f focus) any {
	if !f.again || e.position || e.kind != isNumber || e.op == "" || f.at.attr >= 0 {
		return v.eval(e, f)
	}
	key := numberOf{e, f.at.node}
	if n, known := v.told.numbers[key]; known {
		return n
	}
	n := v.number(e, f)
	if v.told.size+numberBytes <= maxVerdicts {
		if v.told.numbers == nil {
			v.told.numbers = map[numberOf]float64{}
		}
		v.told.size += numberBytes
		v.told.numbers[key] = n
	}
	return n
}
