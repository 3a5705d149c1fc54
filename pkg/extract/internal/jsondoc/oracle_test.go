package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/theory/jsonpath"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/pattern"
)

// oracle returns the sorted normalized paths that github.com/theory/jsonpath chooses. ok is false
// if the library is unreliable. It panics if a function has nothing as its argument. It also takes
// nothing <= nothing for false (RFC 9535, 2.3.5.3, says true) and does not put the pattern of
// match() in parentheses.
func oracle(body, path string) (places []string, err error, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	p, err := jsonpath.Parse(path)
	if err != nil {
		return nil, err, true
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader([]byte(body)))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return nil, nil, false
	}
	for _, n := range p.SelectLocated(v) {
		places = append(places, n.Path.Pointer())
	}
	slices.Sort(places)
	return places, nil, true
}

// pointer returns a node's JSON pointer.
func (d *Document) pointer(n Node) string {
	if n == Root {
		return ""
	}
	e := &d.nodes[n]
	step := fmt.Sprint(e.index)
	if e.member {
		step = strings.ReplaceAll(strings.ReplaceAll(e.name, "~", "~0"), "/", "~1")
	}
	return d.pointer(e.parent) + "/" + step
}

// checkPath fails unless the path chooses what the oracle chooses.
func checkPath(t interface {
	Helper()
	Fatalf(string, ...any)
}, body, path string) {
	t.Helper()
	var d Document
	if d.Parse([]byte(body), false) != nil {
		return
	}
	want, theirErr, ok := oracle(body, path)
	p, err := Compile(path, new(pattern.Total))
	if !ok || err != nil && strings.Contains(err.Error(), "nested") {
		return
	}
	if !utf8.ValidString(path) { // the library accepts some of these
		if err == nil {
			t.Fatalf("%q is no text, and compiles", path)
		}
		return
	}
	if (err == nil) != (theirErr == nil) {
		t.Fatalf("%q: %v, theirs %v", path, err, theirErr)
	}
	if err != nil {
		return
	}
	var got []string
	d.walk(&p.query, Root, func(n Node) bool {
		got = append(got, d.pointer(n))
		return true
	})
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%s of %s: got %q, want %q", path, body, got, want)
	}
}

var bodies = []string{`{"a":[{"b":1,"c":"x"},{"b":2.0},{"c":null,"a":{"b":[1,2,3]}}],"b":{"a":1,"c":[[],{}]},"c":"abc"}`,
	`[0,1,2,3,4,5,6,7,8,9]`, `[[1,[2,[3]]],{"a":{"a":{"a":true}}},"a",false,null]`, `"x"`, `{}`}

// TestPathsAreTheLibrarys joins random pieces of paths.
func TestPathsAreTheLibrarys(t *testing.T) {
	segments := []string{".a", ".b", ".c", "..a", "..*", ".*", "[0]", "[-1]", "[1:3]", "[::-1]",
		"[:2, 'a']", "[?@.b]", "['c',\"a\"]",
		"[?!@.b]", "..[0]", "..[?@]", " [ * ]", "[-2::2]", "[8:2:-3]"}
	operands := []string{"@", "@.a", "@.b", "$.c", "@[0]", "1", "-0.5e1", "'x'", "null", "true",
		"length(@)", "length(@.c)", "count(@.*)",
		"count(@..b)", "value(@..b)", "@.a.b"}
	// never arrays or objects
	plain := []string{"1", "-0.5e1", "'x'", "length(@)", "length(@.c)", "count(@.*)", "count(@..b)"}
	rapid.Check(t, func(rt *rapid.T) {
		var path strings.Builder
		path.WriteString("$")
		for range rapid.IntRange(0, 4).Draw(rt, "segments") {
			if rapid.IntRange(0, 3).Draw(rt, "filter") > 0 {
				path.WriteString(rapid.SampledFrom(segments).Draw(rt, "segment"))
				continue
			}
			condition := func() string {
				op := rapid.SampledFrom([]string{"==", " != ", "<", " > "}).Draw(rt, "op")
				if op == "<" || op == " > " {
					// The library orders objects and arrays; the standard does not.
					return rapid.SampledFrom(plain).Draw(rt, "left") + op +
						rapid.SampledFrom(plain).Draw(rt, "right")
				}
				return rapid.SampledFrom(operands).Draw(rt, "left") + op +
					rapid.SampledFrom(operands).Draw(rt, "right")
			}
			fmt.Fprintf(&path, "%s[?%s %s (%s)]",
				rapid.SampledFrom([]string{"", ".."}).Draw(rt, "descendants"), condition(),
				rapid.SampledFrom([]string{"&&", "||"}).Draw(rt, "junction"), condition())
		}
		checkPath(rt, rapid.SampledFrom(bodies).Draw(rt, "body"), path.String())
	})
}

func FuzzPath(f *testing.F) {
	for _, body := range bodies {
		for _, path := range []string{"$..a[?@.b > 1]",
			"$[?match(@.c, 'a.c') || search($.c,\"b\")]",
			"$[?count(@..*) < 3, -1:0:-1]['\\u0061']"} {
			f.Add(body, path)
		}
	}
	f.Fuzz(func(t *testing.T, body, path string) {
		if len(body) < 1000 && len(path) < 100 && !strings.Contains(path, "match") &&
			!strings.ContainsAny(path, "<>") {
			checkPath(t, body, path)
		}
	})
}

// FuzzBody compares the reader with encoding/json.
func FuzzBody(f *testing.F) {
	for _, body := range bodies {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var d Document
		if err := d.Parse([]byte(body), false); err != nil {
			return
		}
		quote := func(dst, s []byte) []byte {
			b, _ := json.Marshal(string(s))
			return append(dst, b...)
		}
		var got, want any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(body, "\ufeff")), &want); err != nil {
			return // a number outside the range of float64
		}
		if err := json.Unmarshal(d.AppendJSON(nil, Root, 1<<20, quote), &got); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: got %v, want %v", body, got, want)
		}
	})
}
