package shop

import (
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// maxWork bounds the work on a page, counted in elements and in chunks of attributes and texts. A
// system has about sixty selectors; on a page of 30,000 elements they cost a third of maxWork.
const (
	maxWork      = 50_000_000
	bytesPerStep = 16
	perOffer     = 50 // steps, because many products may share an offer
)

// selector is a compiled selector from the tables.
type selector struct {
	whole cascadia.Matcher
	own   cascadia.Matcher // a match's own compound; nil if whole is all
}

// mustCompile compiles a selector from the tables, where only spaces separate compounds. It panics
// on a bad selector, which is a programming error that a test finds.
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

// query returns the descendants of n that match s, in document order. An element's ancestors are
// looked at, and paid for, only if the element itself may match.
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

// weight is the cost of looking at an element.
func weight(n *html.Node) int {
	bytes := 0
	for i := range n.Attr {
		bytes += len(n.Attr[i].Key) + len(n.Attr[i].Val)
	}
	return 1 + bytes/bytesPerStep
}
