package filter

import (
	"fmt"

	"shoal.dev/shoal/pkg/pattern"
)

// MaxJoined is the most comparisons and groups of joined filters. Their patterns together have the
// limits of a single filter's.
const MaxJoined = 4 * MaxNodes

// Join returns a filter that passes what passes any of anyOf, and also. Without anyOf it is also.
// Its errors have the code invalid_filter and name filters.
func Join(anyOf []Node, also Node) (Node, error) {
	joined := also
	if len(anyOf) > 0 {
		// A filter that passes everything makes the others irrelevant.
		some := Or{}
		for _, node := range anyOf {
			if node == nil {
				some = nil
				break
			}
			some = append(some, node)
		}
		switch {
		case some == nil:
		case also == nil:
			joined = some
		default:
			joined = And{some, also}
		}
	}
	var m measure
	m.add(joined)
	if m.nodes > MaxJoined {
		return nil, invalid("filters", "categories and filters have at most %d conditions and "+
			"groups together", MaxJoined)
	}
	if m.err != nil {
		return nil, invalid("filters", "of categories and filters together: %v", m.err)
	}
	return joined, nil
}

// measure is the size of a tree.
type measure struct {
	nodes    int
	patterns pattern.Total
	err      error // of the patterns
}

func (m *measure) add(n Node) {
	m.nodes++
	var inside []Node
	switch n := n.(type) {
	case nil:
	case And:
		inside = n
	case Or:
		inside = n
	case Nor:
		inside = n
	case Compare:
		if n.Pattern != nil && m.err == nil {
			m.err = m.patterns.Add(n.Pattern.Size())
		}
	default:
		panic(fmt.Sprintf("filter: a node %T", n)) // there are only four
	}
	for _, node := range inside {
		m.add(node)
	}
}
