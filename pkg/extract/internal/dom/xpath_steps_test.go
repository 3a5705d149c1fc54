package dom

import (
	"errors"
	"strings"
	"testing"
)

// stepsOf counts the steps that an expression takes on a page within a budget, and says how it
// ended.
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

// What takes each node but once takes steps in proportion to the page, whichever axis it is.
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
			"//a[not(following::a)]", "//a[position() = 1][preceding::a]",
		} {
			steps, err := stepsOf(t, page.text, expr, maxSteps)
			if most := 8 * page.nodes; steps > most || err != nil {
				t.Errorf("%s: %s takes %d steps, more than %d: %v", page.name, expr, steps, most,
					err)
			}
		}
	}
}

// What asks each node for all before or behind it is paid for node by node, and ends with an error
// where the budget does.
func TestXPathStepsAreCharged(t *testing.T) {
	const budget = maxSteps / 25 // each of these would take 400 million
	page := strings.Repeat("<a>y</a>", elements)
	for _, expr := range []string{
		"//a[count(preceding::*) > 5]", "//a[count(following::a) > 5]", "//a/preceding::a[last()]",
		"//a/following::a[position() > 2]",
		"//a/following::a[. = 'x'][1]", "//a[preceding::a = 'x']",
		"//a[count(preceding::a | following::a) = 3]", "//a[sum(following::a) = 1]",
	} {
		steps, err := stepsOf(t, page, expr, budget)
		if !errors.Is(err, errTooSlow) || steps < budget || steps > budget+elements {
			t.Errorf("%s: %d steps: %v", expr, steps, err)
		}
	}
}
