package dom

import "github.com/andybalholm/cascadia"

// Selector is a compiled CSS selector. It is safe for concurrent use.
type Selector struct {
	group cascadia.SelectorGroup
}

// CompileSelector compiles a selector or a list of them.
func CompileSelector(css string) (*Selector, error) {
	group, err := cascadia.ParseGroup(css)
	if err != nil {
		return nil, err
	}
	return &Selector{group}, nil
}

// First is the first match among e and all that it holds, None if there is none.
func (s *Selector) First(d *Document, e Elem) Elem {
	for i := e; i < d.End(e); i++ {
		if s.group.Match(d.nodes[i]) {
			return i
		}
	}
	return None
}

// All are the matches in the document, in its order.
func (s *Selector) All(d *Document) []Elem {
	var all []Elem
	for i := range Elem(len(d.elems)) {
		if s.group.Match(d.nodes[i]) {
			all = append(all, i)
		}
	}
	return all
}
