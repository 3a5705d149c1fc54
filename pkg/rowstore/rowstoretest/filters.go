package rowstoretest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// values are the values of a field in the corpus: every kind, and what engines are known to
// confuse. "" is a missing field.
var values = []string{
	``, `null`, `true`, `false`, `0`, `-0.0`, `1`, `1.0`, `12.5`, `1e3`, `-7`, `9007199254740993`,
	`0.1`, `1e-7`, `1e400`,
	`123456789012345678901234567890`, `""`, `"1"`, `"01"`, `"1.0"`, `"12.50"`, `"1e3"`, `" 1"`,
	`"1 "`, `"+1"`, `"-7"`, `"0x1"`,
	`"1e400"`, `"true"`, `"null"`, `"a"`, `"A"`, `"abc"`, `"ABC"`, `"aXbc"`, `"Straße"`,
	`"STRASSE"`, `"STRAẞE"`, `"ſ"`, `"s"`,
	`"K"`, `"k"`, `"İ"`, `"i"`, `"Ärger"`, `"ärger"`, `"日本語"`, `"🐟"`, `"a\u0000b"`, `"a\"b"`,
	`"a\\b"`, `"a\nb"`,
	`"\u0061bc"`, `"%"`, `"_"`, `"2026-01-31"`, `"2026-1-31"`, `[]`, `[1]`, `["a"]`, `"[1]"`, `{}`,
	`{"x":1}`,
	`"{\"x\":1}"`,
}

// operands are compared with the values.
var operands = []string{
	`null`, `true`, `false`, `0`, `1`, `12.5`, `1000`, `-7`, `9007199254740993`, `0.1`, `1e-7`,
	`1.2345678901234568e29`, `""`, `"1"`,
	`"a"`, `"A"`, `"abc"`, `"bc"`, `"12.5"`, `"true"`, `"straße"`, `"S"`, `"k"`, `"İ"`, `"ä"`,
	`"日"`, `"🐟"`, `"\u0000"`, `"\""`,
	`"\\"`, `"%"`, `"_"`, `"2026-01-31"`, `"[1]"`, `"\n"`,
}

// patterns are tried as regex.
var patterns = []string{`^a`, `c$`, `(?i)abc`, `^$`, `.`, `\d+`, `[äÄ]`, `^.$`, `a.b`, `(?s)a.b`,
	`\x00`}

type document struct {
	raw     string
	decoded map[string]any
}

func (s *suite) documents(raw []string) []document {
	s.Helper()
	docs := make([]document, len(raw))
	for i, text := range raw {
		docs[i].raw = text
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		s.ok(decoder.Decode(&docs[i].decoded))
	}
	return docs
}

// corpus stores a document for every value of field v.
func (s *suite) corpus() (rowstore.Scope, []document) {
	s.Helper()
	var raw []string
	for i, v := range values {
		doc := fmt.Sprintf(`{"id":%d`, i)
		if v != "" {
			doc += `,"v":` + v
		}
		// w varies against v, so that filters can combine two fields.
		if w := values[(i*7+3)%len(values)]; w != "" {
			doc += `,"w":` + w
		}
		raw = append(raw, doc+"}")
	}
	job := s.job()
	s.put(s.delivered(job, 0, 0, raw...))
	return only(job), s.documents(raw)
}

// failer is a test that can fail.
type failer interface {
	Fatalf(format string, args ...any)
}

// agree checks that the store finds exactly the documents that filter.Match passes.
func (s *suite) agree(t failer, scope rowstore.Scope, docs []document, text string) {
	s.Helper()
	node, err := filter.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	s.agreeOn(t, scope, docs, node, text)
}

// agreeOn is agree for a parsed filter; text names it in failures.
func (s *suite) agreeOn(t failer, scope rowstore.Scope, docs []document, node filter.Node,
	text string) {
	s.Helper()
	want := []string{}
	budget := filter.NewBudget(s.ctx)
	for _, doc := range docs {
		if filter.Match(budget, node, doc.decoded) {
			want = append(want, doc.raw)
		}
	}
	found, _, err := s.store.Scan(s.ctx,
		rowstore.ScanQuery{Scope: scope, Filter: node, Upto: 1 << 62, Limit: 1000})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	got := texts(found)
	for _, doc := range docs {
		if slices.Contains(want, doc.raw) != slices.Contains(got, doc.raw) {
			t.Fatalf("%s: %s: match %v, found %v", text, doc.raw, slices.Contains(want, doc.raw),
				slices.Contains(got, doc.raw))
		}
	}
	count, err := s.store.Count(s.ctx, scope, node)
	if err != nil || count != int64(len(want)) {
		t.Fatalf("%s: count %d, %v, want %d", text, count, err, len(want))
	}
}

// comparisons returns all operators with all operands that they take.
func comparisons() []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for i, v := range operands {
		kind := v[0]
		text, number := kind == '"', kind == '-' || '0' <= kind && kind <= '9'
		for _, op := range []string{"eq", "ne"} {
			add(`{%q:%s}`, op, v)
		}
		other := operands[(i+1)%len(operands)]
		for _, op := range []string{"in", "nin"} {
			add(`{%q:[%s]}`, op, v)
			add(`{%q:[%s,%s,%s]}`, op, v, other, v)
		}
		if text || number {
			for _, op := range []string{"gt", "gte", "lt", "lte"} {
				add(`{%q:%s}`, op, v)
			}
		}
		if text {
			add(`{"between":["A",%s]}`, v)
			for _, op := range []string{"contains", "startsWith", "endsWith"} {
				add(`{%q:%s}`, op, v)
			}
		}
		if number {
			add(`{"between":[0,%s]}`, v)
		}
	}
	for _, p := range patterns {
		add(`{"regex":%q}`, p)
	}
	add(`{"exists":true}`)
	add(`{"exists":false}`)
	add(`{"in":[]}`)
	add(`{"nin":[]}`)
	return all
}

func testFilterOperators(s *suite) {
	scope, docs := s.corpus()
	s.agree(s, scope, docs, `{}`)
	for n, comparison := range comparisons() {
		s.agree(s, scope, docs, `{"v":`+comparison+`}`)
		if !testing.Short() || n%3 == 0 {
			s.agree(s, scope, docs, `{"$nor":[{"v":`+comparison+`}]}`)
		}
	}
}

// testFilterFields: field names that mean something to engines, or that JSON can write in several
// ways.
func testFilterFields(s *suite) {
	names := []string{"a.b", "a", "ä", "with space", "x&<y>", "a[0]", "[0]", "#", "#-1", "*", "$",
		"'", "`", "?", "日本", "_sourceUrl", ":x",
		"%s", "--", "a;b", strings.Repeat("n", filter.MaxFieldBytes)}
	raw := []string{`{"a":{"b":1}}`, `{"\u00e4":1}`, `{"a\u002eb":1}`}
	for _, name := range names {
		encoded, err := json.Marshal(map[string]int{name: 1})
		s.ok(err)
		raw = append(raw, string(encoded))
	}
	job := s.job()
	s.put(s.delivered(job, 0, 0, raw...))
	docs := s.documents(raw)
	for _, name := range names {
		if strings.HasPrefix(name, "$") {
			continue // a filter cannot name it
		}
		key, err := json.Marshal(name)
		s.ok(err)
		for _, comparison := range []string{`1`, `{"exists":true}`, `{"gt":0}`, `{"ne":1}`,
			`{"eq":null}`} {
			s.agree(s, only(job), docs, fmt.Sprintf(`{%s:%s}`, key, comparison))
		}
	}
}

func testFilterTrees(s *suite) {
	scope, docs := s.corpus()
	leaves := comparisons()
	var tree func(depth int) *rapid.Generator[string]
	tree = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kind := rapid.SampledFrom([]string{"leaf", "leaf", "$and", "$or", "$nor"}).Draw(t,
				"kind")
			if depth == 1 || kind == "leaf" {
				field := rapid.SampledFrom([]string{"v", "w", "id", "gone"}).Draw(t, "field")
				return fmt.Sprintf(`{%q:%s}`, field, rapid.SampledFrom(leaves).Draw(t, "leaf"))
			}
			parts := rapid.SliceOfN(tree(depth-1), 1, 3).Draw(t, "parts")
			return fmt.Sprintf(`{%q:[%s]}`, kind, strings.Join(parts, ","))
		})
	}
	rapid.Check(s.T, func(t *rapid.T) { s.agree(t, scope, docs, tree(4).Draw(t, "filter")) })
}

// testFilterLimits tries the largest filters that Parse accepts.
func testFilterLimits(s *suite) {
	scope, docs := s.corpus()
	operands := make([]string, filter.MaxOperands)
	for i := range operands {
		operands[i] = fmt.Sprint(i)
		if i%2 == 0 {
			operands[i] = fmt.Sprintf(`"a%d"`, i)
		}
	}
	list := strings.Join(operands, ",")
	s.agree(s, scope, docs, `{"v":{"in":[`+list+`]}}`)
	branches := make([]string, filter.MaxNodes-1)
	for i := range branches {
		branches[i] = fmt.Sprintf(`{"v":{"in":[%d,"x%d",null]}}`, i, i)
	}
	s.agree(s, scope, docs, `{"$nor":[`+strings.Join(branches, ",")+`]}`)
	s.agree(s, scope, docs, strings.Repeat(`{"$nor":[`, 7)+`{"v":{"gt":1}}`+strings.Repeat(`]}`, 7))
	s.agree(s, scope, docs, `{"v":{"regex":"`+strings.Repeat(`(a|`, 63)+`b`+strings.Repeat(`)`, 63)+
		`"}}`)
	for _, op := range []string{"contains", "startsWith", "endsWith"} {
		for _, letter := range []string{"s", "θ", "ꙋ"} { // of which folding knows three forms
			s.agree(s, scope, docs, fmt.Sprintf(`{"v":{%q:%q}}`, op,
				strings.Repeat(letter, filter.MaxPartBytes/len(letter))))
		}
	}
}

// testFilterJoined joins categories by or, and with a filter by and, up to the largest allowed.
func testFilterJoined(s *suite) {
	scope, docs := s.corpus()
	parse := func(text string) filter.Node {
		node, err := filter.Parse([]byte(text))
		s.ok(err)
		return node
	}
	join := func(also string, anyOf ...string) {
		s.Helper()
		var nodes []filter.Node
		for _, text := range anyOf {
			nodes = append(nodes, parse(text))
		}
		node, err := filter.Join(nodes, parse(also))
		s.ok(err)
		s.agreeOn(s, scope, docs, node, also+" and any of "+strings.Join(anyOf, ","))
	}
	numbers, texts, none := `{"v":{"gte":0}}`, `{"v":{"startsWith":"a"}}`, `{"v":null}`
	join(`{}`, numbers)
	join(`{}`, numbers, texts, none)
	join(`{"w":{"exists":true}}`, numbers, texts)
	join(`{"$or":[{"w":1},{"id":{"lt":20}}]}`, none, texts, numbers)
	join(`{"id":{"gt":9}}`, numbers, `{}`)
	join(`{"id":{"gt":9}}`)
	// 20 categories of 19 conditions each, one of them nested as deep as allowed.
	var many []string
	for i := range 20 {
		var branches []string
		for j := range 18 {
			branches = append(branches, fmt.Sprintf(`{"v":{"in":[%d,"x%d",null]}}`, 20*i+j, j))
		}
		many = append(many, `{"$nor":[`+strings.Join(branches, ",")+`]}`)
	}
	many[19] = strings.Repeat(`{"$nor":[`, 7) + `{"v":{"gt":1}}` + strings.Repeat(`]}`, 7)
	join(`{"$or":[{"w":{"ne":7}},{"v":{"contains":"a"}}]}`, many...)
}
