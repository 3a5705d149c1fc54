package dom

// maxVerdicts bounds what verdicts of one evaluation take together, in bytes.
const maxVerdicts = 4 << 20

// verdicts are what filters said of nodes. Steps that lead across the page come to a node from each
// of many. A filter that asks for no places says the same of it every time.
type verdicts struct {
	said map[*expression]verdict // nil: asked once
	size int
}

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
