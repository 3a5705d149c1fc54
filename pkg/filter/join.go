package filter

import (
	"fmt"

	"shoal.dev/shoal/pkg/pattern"
)

// MaxJoined bounds the comparisons and groups of filters that are joined. Their patterns together
// have the bound of one filter's.
const MaxJoined = 4 * MaxNodes

// Join is what some of anyOf lets pass, and also does, too. Without any of anyOf it is also. Its
// errors carry the code invalid_filter and name filters.
func Join(anyOf []Node, also Node) (Node, error) {
	joined := also
	if len(anyOf) > 0 {
		// One that lets everything pass makes the others idle.
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

// measure is how large a tree is.
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
		panic(fmt.Sprintf("filter: a node %T", n)) // there are but four
	}
	for _, node := range inside {
		m.add(node)
	}
}
