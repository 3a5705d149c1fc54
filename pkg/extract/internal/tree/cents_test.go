package tree

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestBetween(t *testing.T) {
	for text, want := range map[string]string{
		"$12|<sup>95</sup>": ".", "12|<sup>95</sup>": ".", "1.299|<sup>95</sup>": ",",
		"1,299|<sup>95</sup>":             ".",
		"$12|<span class=cents>95</span>": ".", `12|<span class="a-price-fraction">95</span>`: ".",
		"12|<i class=Decimals> 95 </i>": ".",
		"12.95|<sup>1</sup>":            " ", "12|<sup>1</sup>": " ", "10|<sup>6</sup>": " ",
		"12|<sup>956</sup>": "^", "12|<sup>9567</sup>": " ", "12|<sup>500 KD</sup>": "^",
		"$ 12 |<sup>95</sup>": ".", "$ 12\n|<sup>\n95\n</sup>": ".", "12 |<sup>1</sup>": "",
		"12|<sup><span>95</span></sup>": ".", "12|<sup>95 €</sup>": ".", "12|<sup>95*</sup>": ".",
		"12|<sup>95 reviews</sup>": " ", "12|<sup>95.5</sup>": " ", "12|<small>95</small>": ".",
		"12|<small>95 Kč</small>": ".", "12|<small>956</small>": "",
		"12|<span class=text-center>95</span>": "", "12|<span class=percent>95</span>": "",
		"12|<span class=kopf>95</span>": "", `12|<span class="price__cents">95</span>`: ".",
		"12|<span class=superscript>95</span>": ".", "12|<span class=supplement>95</span>": "",
		"12" + strings.Repeat(" ", 99) + "|<sup>95</sup>": "",
		"1.299,50|<sup>10</sup>":                          " ",
		"12|<span>95</span>":                              "", "1|<span class=fraction>299</span>": "", "12|<sup>a)</sup>": "",
		"m|<sup>2</sup>": "", "|<sup>95</sup>": "",
		"12|<sup></sup>": "", "12|<span class=cents>9<b>5</b></span>": "", "$|<sup>12</sup>": "",
	} {
		before, element, _ := strings.Cut(text, "|")
		nodes, err := html.ParseFragment(strings.NewReader(element), nil)
		if err != nil {
			t.Fatal(err)
		}
		var find func(n *html.Node) *html.Node
		find = func(n *html.Node) *html.Node {
			if n.Type == html.ElementNode && n.Data != "html" && n.Data != "head" &&
				n.Data != "body" {
				return n
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if found := find(c); found != nil {
					return found
				}
			}
			return nil
		}
		n := find(nodes[0])
		if n == nil {
			t.Fatalf("%s has no element", text)
		}
		if got := Between(before, n); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
