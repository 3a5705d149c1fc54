package jsondoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/pattern"
)

// quote suffices for these tests.
func quote(dst, s []byte) []byte { return strconv.AppendQuote(dst, string(s)) }

func parse(t testing.TB, body string) *Document {
	t.Helper()
	var d Document
	if err := d.Parse([]byte(body), false); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return &d
}

func compile(t testing.TB, path string) *Path {
	t.Helper()
	p, err := Compile(path, new(pattern.Total))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return p
}

// chosen returns the values that a path chooses, as written, in the path's order.
func chosen(d *Document, p *Path) []string {
	all := []string{}
	d.walk(&p.query, Root, func(n Node) bool {
		all = append(all, d.written(n))
		return true
	})
	return all
}

// TestPaths also checks the order, which the library used as oracle elsewhere does not keep.
func TestPaths(t *testing.T) {
	const shop = `{"store":{"book":[{"t":"A","price":8.95,"tags":["x"]},{"t":"B","price":12.99,"isbn":"1"},` +
		`{"t":"C","price":8.99,"isbn":"2"},{"t":"D","price":22.99,"tags":[]}],"bicycle":{"price":399}},"max":10}`
	for _, c := range []struct{ body, path, want string }{
		{shop, `$.store.book[*].t`, `"A" "B" "C" "D"`},
		{shop, `$..price`, `8.95 12.99 8.99 22.99 399`},
		{shop, `$.store.book[-1:].t`, `"D"`},
		{shop, `$.store.book[2,0].t`, `"C" "A"`},
		{shop, `$.store.book[::-2]['t']`, `"D" "B"`},
		{shop, `$..book[?@.isbn].t`, `"B" "C"`},
		{shop, `$..book[?@.price < $.max].t`, `"A" "C"`},
		{shop, `$..book[?!@.isbn && @.price>=8.95].t`, `"A" "D"`},
		{shop, `$..book[?count(@.tags[*]) == 1].t`, `"A"`},
		{shop, `$..book[?length(@.tags) == 0].t`, `"D"`},
		{shop, `$..book[?value(@..t) == "B"].price`, `12.99`},
		{shop, `$..book[?match(@.t, "A|D")].t`, `"A" "D"`},
		{shop, `$..book[?search(@.t, '[BC]')].t`, `"B" "C"`},
		{shop, `$["max"]`, `10`},
		{`{"b":1,"a":2,"b":3}`, `$.*`, `2 3`},
		{`{"b":1,"a":2,"b":3}`, `$.b`, `3`},
		{`{"x":{"a":1},"a":2}`, `$..a`, `2 1`},
		{`[1.0, 1, "1", 10000000000000000000001, 1e400]`, `$[?@ == 1]`, `1.0 1`},
		{`[[1,{"a":2}],[1,{"a":2.0}],[{"a":2},1]]`, `$[?@ == $[0]]`, `[1,{"a":2}] [1,{"a":2.0}]`},
		{`[{"a":null},{}]`, `$[?@.a == null]`, `{"a":null}`},
		{`["é", "\u00e9", "e\u0301"]`, `$[?@ == 'é']`, `"é" "\u00e9"`},
		{`{"\u0061\"":1}`, `$["a\""]`, `1`},
		{`["a\nb", "a b"]`, `$[?match(@, "a.b")]`, `"a b"`},
		{`[{"a":"x","re":"x|y"},{"a":"z","re":"x|y"},{"a":"x","re":"("}]`, `$[?match(@.a, @.re)].a`,
			`"x"`},
		{`{"a":{"x":1},"b":2}`, `$[?@.gone <= @.lost]`, `{"x":1} 2`},
		{`7`, `$`, `7`},
		{`[1,2]`, `$[1:0], $`, ``},
	} {
		if p, err := Compile(c.path, new(pattern.Total)); err == nil {
			if got := strings.Join(chosen(parse(t, c.body), p), " "); got != c.want {
				t.Errorf("%s: got %s, want %s", c.path, got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

func TestBadPaths(t *testing.T) {
	for _, path := range []string{"", "a", "$.", "$..", "$[", "$[]", "$['a]", `$["\x"]`, "$[01]",
		"$[-0]", "$[9007199254740992]",
		"$ ", " $", "$.a b", "$[?@.a=1]", "$[?@..a==1]", "$[?1]", "$[?length(@.a)]",
		"$[?count(@.a)]", "$[?match(@.a,'x')==true]",
		"$[?length(@..a)==1]", "$[?count(1)==1]", "$[?foo(@)]", "$[?@.a==foo(@)]", "$[?@ == 01]",
		"$[?(@.a]", "$[?!@.a==1]",
		`$["\ud800"]`, "$\xff",
		"$[?" + strings.Repeat("(", 30) + "@" + strings.Repeat(")", 30) + "]",
		strings.Repeat("$[?@", 30) + strings.Repeat("]", 30),
		"$[?" + strings.Repeat("length(", 30) + "@" + strings.Repeat(")", 30) + "==1]"} {
		if _, err := Compile(path, new(pattern.Total)); err == nil {
			t.Errorf("%.60q is accepted", path)
		}
	}
}

func TestBodies(t *testing.T) {
	for _, c := range []struct {
		body  string
		lines bool
		want  string // result of AppendJSON; "" if the body is refused
	}{
		{"\ufeff { \"b\" : [ 1.50 , true, null,\n{}] , \"a\\u0041\" :\"x\" } ", false,
			`{"b":[1.50,true,null,{}],"aA":"x"}`},
		{`{"a":1,"a":{"b":2}}`, false, `{"a":{"b":2}}`},
		{"12345678901234567890.10E+2", false, "12345678901234567890.10E+2"},
		{"{\"a\":1}\n\n  {\"a\":2}\r\n[]", true, `[{"a":1},{"a":2},[]]`},
		{"", true, `[]`},
		{"{\"a\":1}\n{", true, ""},
		{"1 2", true, ""},
		{"", false, ""},
		{"{}x", false, ""},
		{"callback({})", false, ""},
		{strings.Repeat("[", 501) + strings.Repeat("]", 501), false,
			strings.Repeat("[", 501) + strings.Repeat("]", 501)},
		{strings.Repeat("[", 502) + strings.Repeat("]", 502), false, ""},
		{"[" + strings.Repeat("1,", maxNodes) + "1]", false, ""},
	} {
		var d Document
		err := d.Parse([]byte(c.body), c.lines)
		got := ""
		if err == nil {
			got = string(d.AppendJSON(nil, Root, 1<<20, quote))
		}
		if got != c.want {
			t.Errorf("%.40q: got %.60s, %v, want %.60s", c.body, got, err, c.want)
		}
	}
}

// TestHostilePaths evaluates paths made to take long; a regression shows as an endless test.
func TestHostilePaths(t *testing.T) {
	wide := "[" + strings.TrimSuffix(strings.Repeat(`"aaaaaaaa",`, 100_000), ",") + "]"
	deep := strings.Repeat(`[0,`, 490) + "0" + strings.Repeat("]", 490)
	twins := `{"a":` + wide + `,"b":` + wide + `}`
	object := "{"
	for i := range 50_000 {
		object += fmt.Sprintf(`"%d":%d,`, i, i)
	}
	object = strings.TrimSuffix(object, ",") + "}"
	for _, c := range []struct {
		body, path string
		slow       bool
	}{
		{wide, "$[?$[*]]", false},
		{wide, "$[?count($[*]) == 1]", true},
		{wide, "$[?$[?count($[*]) == 1]]", true},
		{wide, "$[?search(@, '(a*)*(a|aa)*b')]", false},
		{wide, "$[?search(@, @)]", true},
		{wide, "$[?@ == $[99999]]", true},
		{deep, "$" + strings.Repeat("..*", 20), true},
		{deep, "$..[?@..[?@..[?@..[?@..x]]]]", true},
		{twins, "$..[?$.a == $.b]", true},
		{"[" + object + "," + object + "]", "$[?$[0] == $[1]]", true},
	} {
		d := parse(t, c.body)
		compile(t, c.path).All(d)
		if slow := d.Err() != nil; slow != c.slow {
			t.Errorf("%s in %.20s…: given up: %v", c.path, c.body, slow)
		}
	}
}

func TestFirstAndAll(t *testing.T) {
	d := parse(t, `{"x":{"a":1},"a":2}`)
	p := compile(t, "$..a")
	if got := d.written(p.First(d)); got != "2" {
		t.Errorf("first %s", got)
	}
	if got := p.All(d); !slices.Equal(got, []Node{2, 3}) {
		t.Errorf("all %v", got)
	}
	if p := compile(t, "$.gone"); p.First(d) != None || p.All(d) != nil {
		t.Error("there is no such member")
	}
	if got := compile(t, "$['a','a','x'].a").All(d); !slices.Equal(got, []Node{2}) {
		t.Errorf("all %v", got)
	}
}

// TestRepeatedMembersCost: members replaced by later ones with the same name cost steps, too.
func TestRepeatedMembersCost(t *testing.T) {
	d := parse(t, `{"o":{`+strings.Repeat(`"a":1,`, 300_000)+`"b":1},"items":[`+
		strings.Repeat("1,", 150_000)+`1]}`)
	all := compile(t, "$.items[?$.o.b == 1]").All(d)
	if d.Err() != errTooSlow || d.GoesOn() {
		t.Errorf("%d matches, %v", len(all), d.Err())
	}
}
