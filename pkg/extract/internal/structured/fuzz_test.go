package structured

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check verifies what every caller relies on.
func check(t *testing.T, d *Data) {
	t.Helper()
	var item func(it *Item, depth int)
	item = func(it *Item, depth int) {
		if depth > 2000 {
			t.Fatal("items nest without end")
		}
		seen := map[string]bool{}
		for _, p := range it.Props {
			if p.Name == "" || len(p.Values) == 0 || seen[p.Name] {
				t.Fatalf("property %q: %d values, seen before: %v", p.Name, len(p.Values),
					seen[p.Name])
			}
			seen[p.Name] = true
			for _, v := range p.Values {
				switch v.Kind {
				case Entity:
					item(v.Item, depth+1)
				case Number, Bool:
					if !json.Valid([]byte(v.Text)) {
						t.Fatalf("%q is no JSON", v.Text)
					}
				case String:
				default:
					t.Fatalf("a value of kind %d", v.Kind)
				}
			}
		}
	}
	for _, it := range d.Items {
		item(it, 0)
	}
	for _, b := range d.Framework {
		if !json.Valid([]byte(b.JSON)) {
			t.Fatalf("%s is no JSON: %.200s", b.Name, b.JSON)
		}
	}
	for _, p := range d.Pairs {
		if p.Name == "" || p.Value == "" {
			t.Fatalf("pair %q", p)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		script(`{"@type":"Product","offers":[{"price":1.0},],}`), script(`{&quot;a&quot;:1}`),
		`<div itemscope itemref=x><p id=x itemprop=a itemscope itemref=y><b id=y itemprop=c>`,
		`<div vocab=http://schema.org/ typeof=Product><a rel=v:x property=y href=z>`,
		`<script>window.a={"b":1,'c':[undefined]};window["x"]=JSON.parse('{"a":1}')</script>`,
		`<script type=application/json id=__NUXT_DATA__>[["Reactive",1],{"a":2},[1,["Set",1],["Date","x"]]]</script>`,
		`<script>window.a=(function(a,b){return {x:[a,b,a]}}("b",void 0))</script>`,
		`<p :x='[{"id":1},{"id":2}]' x='[{"id":1},{"id":2}]'><script>var x={"id":"0123456789"}</script>`,
		`<script>self.__next_f.push([1,"0:[1,2,3,4,5,6,7,8]\n"])</script>`,
		`<table><tr><th>a<td>b</table><dl><dt>a<dd>b<li><b>x:</b>y`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		d, err := readHTML(page, "https://shop.example/")
		if err == nil {
			check(t, d)
		}
		check(t, readJSONLD(page))
	})
}

// FuzzParseJSON: valid JSON keeps its meaning; anything else becomes valid JSON or an error.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.50e+3,true,null,"x\u00e9\ud83d\ude00\n"]}`, `{a:'b',}`, `[1 2]`, `{"a":{"b":`,
		`[.5,01,+1,-]`, "\"a\nb\"", `{"a":1,"a":2}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseJSON(s)
		if err != nil {
			if json.Valid([]byte(s)) && len(s) < maxDepth {
				t.Fatalf("%q is JSON: %v", s, err)
			}
			return
		}
		written := got.Append(nil)
		if !json.Valid(written) {
			t.Fatalf("%q is written as %q", s, written)
		}
		if json.Valid([]byte(s)) {
			if diff := cmp.Diff(decode(t, []byte(s)), decode(t, written)); diff != "" {
				t.Fatalf("%q changes:\n%s", s, diff)
			}
		}
	})
}

func decode(t *testing.T, s []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestBounds: costly pages are read up to a bound, and Cut says so.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name, page string
		cut        bool
	}{
		{"deep JSON", script(strings.Repeat(`{"a":`, 100_000)), true},
		{"deep arrays", script(strings.Repeat(`[`, 1_000_000)), true},
		{"many values", script("[" + strings.Repeat(`{"a":1},`, 300_000) + "]"), true},
		{"many blocks", strings.Repeat(script(`{"a":1}`), 2_000), true},
		{"many properties", script("{" + strings.Repeat(`"a`+strings.Repeat("b", 3)+`":1,`, 10) +
			manyNames(2_000) + "}"), true},
		{"items that name each other", refs(300), true},
		{"scripts in scripts",
			`<script>` + strings.Repeat(`window.a=["window.a=[",`, 50_000) + `</script>`, false},
		{"microdata in microdata",
			strings.Repeat(`<b itemscope itemprop=a>`, 400) + strings.Repeat("text ", 20_000),
			false},
		{"text in text", strings.Repeat(`<div itemprop=a>`, 400) + "<p itemscope>" +
			strings.Repeat(`<b itemprop=a>`, 60) + strings.Repeat("text ", 200_000), true},
		{"tables in tables", strings.Repeat(`<table><tr><td>a<td>`, 120) + strings.Repeat("text ",
			20_000), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := read(t, c.page)
			check(t, d)
			if d.Cut != c.cut {
				t.Errorf("cut: %v", d.Cut)
			}
		})
	}
}

// TestHugeTrees: pages whose tree would take much memory are refused, whatever causes it; large
// ones are accepted.
func TestHugeTrees(t *testing.T) {
	for name, c := range map[string]struct {
		page    string
		refused bool
	}{
		"tags":       {strings.Repeat("<b>", 1_000_000), true},
		"end tags":   {strings.Repeat("</p>", 300_000), true}, // each creates an empty element
		"attributes": {"<p " + strings.Repeat("a ", 1_000_000) + ">", true},
		"slashes":    {"<p a" + strings.Repeat("/a", 1_000_000) + ">", true},
		"a large page": {strings.Repeat(`<div class="a b"><a href="/x">text</a></div>`, 20_000),
			false},
		"a long one": {"<p>" + strings.Repeat("many words and <3 ", 500_000), false},
	} {
		_, err := readHTML([]byte(c.page), "https://x.example/")
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"n`)
		for ; i > 0; i /= 26 {
			b.WriteByte(byte('a' + i%26))
		}
		b.WriteString(`":1,`)
	}
	return b.String()
}

// refs makes n items, each of which includes all the others.
func refs(n int) string {
	var ids, b strings.Builder
	for i := range n {
		ids.WriteString(" i" + strings.Repeat("x", i))
	}
	for i := range n {
		b.WriteString(`<p itemscope itemprop=a id=i` + strings.Repeat("x", i) + ` itemref="` +
			ids.String() + `"></p>`)
	}
	return b.String()
}
