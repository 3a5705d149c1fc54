package shop

import (
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// maxWork bounds what is looked at on a page, in elements and parts of their attributes and texts.
// A system has some sixty selectors, and of a page of 30,000 elements they look at a third of that.
const (
	maxWork      = 50_000_000
	bytesPerStep = 16
	perOffer     = 50 // steps, of data that many products may share
)

// selector is a compiled selector of the tables.
type selector struct {
	whole cascadia.Matcher
	own   cascadia.Matcher // what a match has to match itself; nil where that is all
}

// mustCompile compiles a selector of the tables, in which spaces only part compounds: a bad one is
// a slip, which a test finds.
func mustCompile(css string) *selector {
	parse := func(css string) cascadia.Matcher {
		group, err := cascadia.ParseGroup(css)
		if err != nil {
			panic("shop: selector " + strconv.Quote(css) + ": " + err.Error())
		}
		return group
	}
	s := &selector{whole: parse(css)}
	if at := strings.LastIndexByte(css, ' '); at >= 0 {
		s.own = parse(css[at+1:])
	}
	return s
}

// query is what a selector matches of what an element holds, in document order. What stands around
// an element is looked at, and paid for, only where the element itself may match.
func (p *Page) query(n *html.Node, s *selector) []*html.Node {
	var found []*html.Node
	for c := range n.Descendants() {
		if c.Type != html.ElementNode {
			continue
		}
		if !p.work.Spend(weight(c)) {
			return nil
		}
		if s.own != nil {
			if !s.own.Match(c) {
				continue
			}
			for around := c.Parent; around != nil; around = around.Parent {
				p.work.Spend(weight(around))
			}
			if p.work.Err() != nil {
				return nil
			}
		}
		if s.whole.Match(c) {
			found = append(found, c)
		}
	}
	return found
}

// weight is what a look at an element costs.
func weight(n *html.Node) int {
	bytes := 0
	for i := range n.Attr {
		bytes += len(n.Attr[i].Key) + len(n.Attr[i].Val)
	}
	return 1 + bytes/bytesPerStep
}
