package tree

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestAttributes(t *testing.T) {
	top, err := html.Parse(strings.NewReader(
		`<svg><a xlink:href="/foreign" id="" class="x"></a></svg>`))
	if err != nil {
		t.Fatal(err)
	}
	for n := range top.Descendants() {
		if n.Data != "a" {
			continue
		}
		for key, want := range map[string]string{"class": "x", "id": "", "href": "", "Class": ""} {
			if got := Attr(n, key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		_, empty := LookAttr(n, "id")
		if _, foreign := LookAttr(n, "href"); !empty || foreign {
			t.Errorf("an empty attribute is there: %v; a foreign one: %v", empty, foreign)
		}
		return
	}
	t.Fatal("the page has no element")
}
