package tree

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func elements(n *html.Node) (elements, attributes int) {
	for c := range n.Descendants() {
		if c.Type == html.ElementNode {
			elements++
			attributes += len(c.Attr)
		}
	}
	return elements, attributes
}

// tooMany elements do not fit, whatever else a page has.
const tooMany = MaxBytes/elementBytes + 1

func TestParse(t *testing.T) {
	many := strings.Repeat
	var distinct strings.Builder
	for i := range 480 {
		fmt.Fprintf(&distinct, "<b id=%d>", i)
	}
	for _, c := range []struct {
		name string
		page string
		fits bool
	}{
		{"an ordinary page", "<h1>x</h1>" + many("<p class=\"a b\">y</p>", 1000), true},
		{"a large one", many("<b>y</b> ", 100_000), true},
		{"classes are one attribute",
			many(`<p class="flex flex-col p-4 bg-white rounded-lg shadow md:p-8 lg:p-12">y</p>`,
				40_000), true},
		{"links around blocks", many(`<a href="/x"><div><p>y</p></div></a>`, 10_000), true},
		{"an open element", "<font color=red>" + many("<p>y</p>", 25_000), true},
		{"too many elements", many("<p>", tooMany), false},
		{"in capitals", many("<P>y", tooMany), false},
		{"too many attributes", many("<p "+many("a ", 900)+">", 800), false},
		{"too many of one tag", "<p " + many("a ", 1_001) + ">", false},
		{"as many as one may have", "<p " + many("a ", 1_000) + ">", true},
		{"end tags of nothing", many("<p>x</p></z>", 80_000), false},
		{"some of them", many("<p>x</p></z>", 40_000), true},
		{"tags in deep elements", many("<z>", 500) + many("<x></x>", 60_000), true},
		{"capitals and small letters", many("<P>x</p>", 50_000), true},
		{"list items that never end", many("<li>x</b>", 70_000), false},
		{"void elements", many("<br>", 100_000), true},
		{"much text", many("x", 8<<20), true},
		{"too much of it", "<p>" + many("<", 10<<20), false},
		{"in parts", many(many("x", 1<<20)+"<br>", 20), true},
		{"elements that are made again", "<p>" + distinct.String() + many("<p>x", 20_000), false},
		{"with attributes", "<p><b " + many("a ", 1_000) + ">" + many("<p>x", 1_000), false},
		{"and in cells", "<table>" + many("<tr><td>"+distinct.String(), 1_000), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, err := Parse([]byte(c.page), MaxBytes)
			if (err == nil) != c.fits || err != nil && !errors.Is(err, ErrTooMany) {
				t.Errorf("%v", err)
			}
			if root != nil {
				if n, attributes := elements(root); n > 2*tooMany || attributes > 2*tooMany {
					t.Errorf("%d elements with %d attributes", n, attributes)
				}
			}
		})
	}
}

// TestMemory: a page that fits takes less memory than allowed.
func TestMemory(t *testing.T) {
	page := []byte(strings.Repeat("<b a=b>x</b>", MaxBytes/(elementBytes+attributeBytes+12)))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	root, err := Parse(page, MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := after.HeapAlloc - before.HeapAlloc; used > MaxBytes {
		t.Errorf("%d MiB", used>>20)
	}
	runtime.KeepAlive(root)
}

// FuzzFits: the count is never below the tree's actual size.
func FuzzFits(f *testing.F) {
	for _, page := range []string{"<p>x", `<a href="x>y">z</a><b/ c=d e = f g>`,
		"<p><b a=1><b a=2><p>x<p>y</b>z", "<table><b><tr><td>x</td>y</table>",
		"<svg><style><b><p>", "<i><div></i><u></div>x", "<b\x00>", "<a<b>", "<p =x=y>",
		"<b><b><b><b><p>x", `<select><b><p>x`, "<td><b><td>x"} {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		root, err := html.Parse(strings.NewReader(page))
		if err != nil {
			return
		}
		got, attributes := elements(root)
		counted := count(page, math.MaxInt)
		if got > 4*counted.elements+3 || attributes > 4*counted.attributes {
			t.Errorf("%q: %d elements with %d attributes, counted %d with %d", page, got,
				attributes, counted.elements, counted.attributes)
		}
	})
}
