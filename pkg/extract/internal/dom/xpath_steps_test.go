package dom

import (
	"errors"
	"strings"
	"testing"
)

// stepsOf counts the steps that an expression takes on a page within a budget, and returns its
// error.
func stepsOf(t *testing.T, page, expr string, budget int) (int, error) {
	t.Helper()
	x, err := CompileXPath(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var d Document
	if err := d.Parse([]byte(page)); err != nil {
		t.Fatal(err)
	}
	d.steps, d.check = budget, budget
	x.All(&d)
	return budget - d.steps, d.Err()
}

const (
	links    = 3_861
	elements = 20_000
)

// An evaluation that examines each node once takes steps in proportion to the page, on every axis.
func TestXPathStepsAreLinear(t *testing.T) {
	for _, page := range []struct {
		name, text string
		nodes      int
	}{
		{"links", strings.Repeat("<li><a href=x>y</a></li>", links), 3 * links},
		{"elements", strings.Repeat("<a>y</a>", elements), 2 * elements},
	} {
		for _, expr := range []string{
			"//a[last()]", "//a[position() = last() - 1]", "//a[position() < 3]", "(//a)[last()]",
			"//a[count(//a) > 1]", "//a | //li | //a/text()",
			"//a/preceding::*", "//a/following::*", "//a/ancestor::*", "//a/preceding-sibling::*",
			"//a/following-sibling::*",
			"//a/preceding::a | //a/following::a | //a/ancestor::li", "(//a/preceding::a)[last()]",
			"(//a/following::a)[position() mod 2 = 1]",
			"//a/preceding::*[1]", "//a/following::a[1]", "//a/ancestor::*[last()]",
			"//a[preceding::a and following::a]",
			"//a[not(following::a)]", "//a[position() = 1][preceding::a]", "//a[not(preceding::b)]",
			"//a[count(preceding::*) > 5]", "//a[count(following::a) > 5]",
			"//a[count(preceding-sibling::a) > 5]", "//a[count(following-sibling::*) > 5]",
			"//a[count(preceding::a) = count(following::a)]",
			"//a/preceding::a[last()]", "//a/following::a[last()]",
			"//a/preceding-sibling::a[last()]", "//a/following-sibling::a[last()]",
			"//a[preceding::a = 'x']", "//a[3 < following::a]", "//a[following::li/a != 'y']",
			"//a[count(preceding::*[. != 'x']) > 5]", "//a[not(following::a[contains(., 'x')])]",
			"//*[count(following-sibling::*[a or . = 'y']) > 5]",
			"//a[preceding::li/b or following::a/@href = 'y']",
			"//a[preceding::b | following::b]", "//a[(preceding::a | following::a) = 'x']",
		} {
			steps, err := stepsOf(t, page.text, expr, maxSteps)
			if most := 40 * page.nodes; steps > most || err != nil {
				t.Errorf("%s: %s takes %d steps, more than %d: %v", page.name, expr, steps, most,
					err)
			}
		}
	}
}

// What is asked of the descendants of each node takes steps in proportion to the page, however deep
// the nodes are.
func TestXPathStepsAreLinearInDepth(t *testing.T) {
	const deep, leaves = 400, 20_000
	page := strings.Repeat("<div>", deep) + strings.Repeat("<a>y</a>", leaves)
	for _, expr := range []string{"//div[count(descendant::a) > 5]", "//div[count(.//a) > 5]",
		"//*/descendant::*[last()]", "//div[.//a]", "//div[not(descendant::b)]",
		"//div[descendant::a = 'x']", "//div[descendant::a or .//b]"} {
		steps, err := stepsOf(t, page, expr, maxSteps)
		if most := 40 * (deep + 2*leaves); steps > most || err != nil {
			t.Errorf("%s takes %d steps, more than %d: %v", expr, steps, most, err)
		}
	}
}

// A filter that depends on no positions is evaluated once for a node, wherever steps come from.
func TestXPathFiltersAreAskedOnce(t *testing.T) {
	page := "<b>" + strings.Repeat("y", 40_000) + "x</b><b>x</b>" + strings.Repeat("<i></i>", 3000)
	for _, expr := range []string{
		"//preceding::b[contains(., 'x')][last() - 1]",
		"//i/preceding::b[contains(substring-after(., 'y'), 'x')][1]",
		"//i[preceding::b[contains(substring-after(., 'y'), 'z')]]",
		"//i[count(preceding::b[contains(., 'x')]) > 1]",
		"//i/preceding-sibling::*[not(starts-with(normalize-space(.), 'x'))][last()]",
	} {
		if steps, err := stepsOf(t, page, expr, maxSteps); err != nil {
			t.Errorf("%s: %d steps, %v", expr, steps, err)
		}
	}
}

// Filters that depend on positions are evaluated once for each set of nodes that a step leads to.
// Their parts that need no positions are evaluated once for a node.
func TestXPathPlacesAreAskedOnce(t *testing.T) {
	cells := strings.Repeat("<table><tr><td>7</td><td>x</td></tr></table>", 300)
	page := "<section>" + cells + strings.Repeat("<p>y<b>z</b></p>", 10_000) + "</section>"
	for _, expr := range []string{
		"//preceding::td[not(number(.) = last())] = .//parent::table",
		"//p/preceding::td[position() > 2 and contains(., 'x')]",
		"count(//p/preceding::tr[last() - 1])",
		"//table/following::td[position() mod 2 = 1 or . = 'x']",
		".//ancestor-or-self::body[floor(last() div 2) or starts-with(concat(name(), '-', .), 'a')]",
		"//b/ancestor::section[last() = 1 and contains(., 'x')]",
		"//b/ancestor::*[string-length(.)]",
	} {
		if steps, err := stepsOf(t, page, expr, maxSteps/4); err != nil {
			t.Errorf("%s: %d steps, %v", expr, steps, err)
		}
	}
}

// Verdicts are bounded, and filters that depend on positions keep none.
func TestXPathVerdictsAreBounded(t *testing.T) {
	var v verdicts
	kept := 0
	for range 10 {
		filter := &expression{kind: isTruth}
		if v.of(filter, maxVerdicts/4) != nil {
			t.Error("kept when it was asked once")
		}
		if v.of(filter, maxVerdicts/4) != nil {
			kept++
		}
	}
	if kept != 4 || v.size != maxVerdicts {
		t.Errorf("%d kept, %d bytes", kept, v.size)
	}
	for _, filter := range []*expression{{kind: isNumber}, {kind: isTruth, position: true}} {
		for range 2 {
			if v.of(filter, 0) != nil {
				t.Errorf("%+v is kept", filter)
			}
		}
	}
}

// Expressions that examine all nodes before or after each node are charged node by node. They end
// with an error when the budget does.
func TestXPathStepsAreCharged(t *testing.T) {
	const budget = maxSteps / 25 // each would take 400 million
	page := strings.Repeat("<a>y</a>", elements)
	for _, expr := range []string{
		"//a/following::a[position() > 2]", "//a[contains(preceding::a, 'x')]",
		"//a/preceding::a[last() - 1]",
		"//a/following::a[. = 'x'][1]", "//a[preceding::a != string(.)]",
		"//a[count(preceding::a | following::a) = 3]", "//a[sum(following::a) = 1]",
	} {
		steps, err := stepsOf(t, page, expr, budget)
		if !errors.Is(err, errTooSlow) || steps < budget || steps > budget+elements {
			t.Errorf("%s: %d steps: %v", expr, steps, err)
		}
	}
}

// TestReachIsTheWay: looking up an axis gives the same as walking it, from every node and attribute
// of a page.
func TestReachIsTheWay(t *testing.T) {
	var d Document
	page := `<p id=a>x<b>y</b>z<i><b id=b>u</b><b>v</b></i></p><b></b><ul><li><b>1</b><li>2</ul>`
	if err := d.Parse([]byte("<body>" + strings.Repeat(page, 3))); err != nil {
		t.Fatal(err)
	}
	d.fillNodes()
	v := &evaluation{d: &d}
	var from []spot
	for at, n := range d.xpath.nodes {
		from = append(from, spot{int32(at), -1})
		if n.text < 0 && n.elem != None {
			for i := d.elems[n.elem].attrs; i < d.elems[n.elem].attrsEnd; i++ {
				from = append(from, spot{int32(at), i})
			}
		}
	}
	step := func(text string) *step {
		e, err := parseXPath(text)
		if err != nil {
			t.Fatal(err)
		}
		return &e.steps[0]
	}
	for _, axis := range across {
		for _, test := range []string{"b", "*", "li", "text()", "node()", "none",
			"*[self::b or @id]", "node()[. = 'y']", "b[following::b][not(@id)]"} {
			counts := step(axis + "::" + test)
			count := v.makeReach(counts)
			var end *reach
			ends := step(axis + "::" + test + "[last()]")
			if ends.counted {
				end = v.makeReach(ends)
			}
			for _, p := range from {
				var way []spot
				d.along(axis, p, func(q spot) bool {
					if d.meets(counts, q) && v.passes(counts, nil, q) {
						way = append(way, q)
					}
					return true
				})
				if got := count.count(v, counts, p); got != len(way) {
					t.Errorf("%s::%s of %v: %d, want %d", axis, test, p, got, len(way))
				}
				if end == nil {
					continue
				}
				last, found := end.lastFrom(v, ends, p)
				if found != (len(way) > 0) || found && last != way[len(way)-1] {
					t.Errorf("the last of %s::%s of %v: %v, want one of %v", axis, test, p, last,
						way)
				}
			}
		}
	}
}
