package dom

import (
	"errors"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/pattern"
)

// TestLongValuesCost: attributes and texts that are examined repeatedly are charged by their
// length, however they are written.
func TestLongValuesCost(t *testing.T) {
	repeat := strings.Repeat
	around := func(attr string) string { // many elements inside one with a long attribute
		return "<div " + attr + ">" + repeat("<b class=price></b>", 20_000)
	}
	words, named := repeat("x ", 1<<19), repeat("&copy;", 1<<17)
	for css, page := range map[string]string{
		".product .price":         around(`class="` + words + `"`),
		".x-y .price":             around(`class="` + repeat("x-yx-y", 1<<17) + `"`),
		".product b":              around(`class="` + named + `"`),
		"#product .price":         around(`id="` + named + `"`),
		"[title=product] .price":  around(`title="` + named + `"`),
		"[title~=product] .price": around(`title="` + words + `"`),
		"[title*=product] .price": around(`title="` + words + `"`),
		"[title*=product i] b":    around(`title="` + words + `"`),
		"[title~=product i] b":    around(`title="` + words + `"`),
		"[title^=product] .price": around(`title="` + repeat(" ", 1<<20) + `"`),
		"b:lang(xx)":              repeat("<i>", 480) + repeat("<b></b>", 120_000),
		"b:disabled, b:not(input):not(:enabled):disabled, option:disabled": repeat("<i>", 480) +
			repeat("<option>", 120_000),
		"i:has(p:empty)": repeat("<i>", 480) + "<p>" + repeat(" ", 2<<20) + "x",
	} {
		d := parsed(t, page)
		s, err := CompileSelector(css, new(pattern.Total))
		if err != nil {
			t.Fatal(err)
		}
		found := s.All(d)
		if !errors.Is(d.Err(), errTooSlow) {
			t.Errorf("%s: %d found, %d steps left, %v", css, len(found), d.steps, d.Err())
		}
	}
}

// parsed returns a page with few steps left.
func parsed(t *testing.T, page string) *Document {
	t.Helper()
	var d Document
	if err := d.Parse([]byte(page)); err != nil {
		t.Fatal(err)
	}
	d.steps = maxSteps / 20
	return &d
}

// TestTextsCost: nested elements charge for texts even if little of them is left.
func TestTextsCost(t *testing.T) {
	repeat := strings.Repeat
	for name, page := range map[string]string{
		"white space": repeat("<div>", 490) + repeat(" ", 4<<20) + "x",
		"references":  repeat("<div>", 490) + repeat("&nbsp;", 1<<18) + "x",
		"hidden":      repeat("<div>", 490) + repeat("<style>x</style>", 130_000),
	} {
		d := parsed(t, page)
		rounds := 0
		for ; rounds < 2 && d.GoesOn(); rounds++ {
			for e := Root; e < 490; e++ {
				d.AppendText(nil, e)
			}
		}
		if !errors.Is(d.Err(), errTooSlow) {
			t.Errorf("%s: %d steps left, %v", name, d.steps, d.Err())
		}
	}
	d := parsed(t, "<p title='"+repeat(" ", 4<<20)+"'>"+repeat(" ", 4<<20)+"x")
	for _, expression := range []string{"//p/@title", "//p/text()"} {
		x, err := CompileXPath(expression)
		if err != nil {
			t.Fatal(err)
		}
		d.steps = maxSteps / 20
		for range 20 {
			for _, m := range x.All(d) {
				d.AppendMatch(nil, m)
			}
		}
		if !errors.Is(d.Err(), errTooSlow) {
			t.Errorf("%s: %d steps left, %v", expression, d.steps, d.Err())
		}
	}
}
