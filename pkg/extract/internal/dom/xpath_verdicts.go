package dom

// maxVerdicts bounds what verdicts of one evaluation take together, in bytes.
const maxVerdicts = 4 << 20

// verdicts are what filters said of nodes. Steps that lead across the page come to a node from each
// of many. A filter that asks for no places says the same of it every time.
type verdicts struct {
	said map[*expression]verdict // nil: asked once
	size int
	// numbers that parts of filters gave
	numbers map[numberOf]float64
}

type numberOf struct {
	part *expression
	node int32
}

const numberBytes = 64 // about what a number of a node takes in its map

// verdict is what a filter said, by node: 0 for nothing yet, else one of these. Nil keeps nothing.
type verdict []byte

const (
	fails  = 1
	passes = 2
)

// meeting says that steps from different nodes meet on the axis.
func (s *step) meeting() bool {
	switch s.axis {
	case "self", "attribute", "child":
		return false
	}
	return true
}

// toldOf is what the filters of a step said, nil for none.
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

// of is what a filter said. It is kept from when the filter is asked a second time.
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

// about tells what was said of a node. Attributes are not kept.
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

// part is whether a part of a filter holds. Parts that ask for no places are asked of a node once,
// though the filter asks.
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

// operand is a side of a comparison, or a place. Numbers of a node that ask for no places are
// read once.
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
