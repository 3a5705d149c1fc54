package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
)

const product = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","title":"Product",
"properties":{
	"name":{"type":"string","minLength":1,"description":"The product's name"},
	"price":{"$ref":"#/$defs/money"},
	"currency":{"enum":["EUR","USD"]},
	"images":{"type":"array","items":{"type":"string","format":"uri"}},
	"seller":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},
	"rating":{"anyOf":[{"type":"number"},{"type":"null"}]}
},"required":["name","price"],"additionalProperties":false,"$defs":{"money":{"type":"number","minimum":0}}}`

func mustCompile(t *testing.T, document string) *Schema {
	t.Helper()
	s, err := Compile([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProperties(t *testing.T) {
	want := []Property{
		{Name: "name", Types: []string{"string"}, Required: true,
			Description: "The product's name"},
		{Name: "price", Types: []string{"number"}, Required: true},
		{Name: "currency", Enum: []string{"EUR", "USD"}},
		{Name: "images", Types: []string{"array"},
			Items: &Property{Types: []string{"string"}, Format: "uri"}},
		{Name: "seller", Types: []string{"object"},
			Properties: []Property{{Name: "name", Types: []string{"string"}, Required: true}}},
		{Name: "rating", Types: []string{"number", "null"}},
	}
	s := mustCompile(t, product)
	if diff := cmp.Diff(want, s.Properties()); diff != "" || s.IsList() {
		t.Errorf("list %v, properties (-want +got):\n%s", s.IsList(), diff)
	}
	list := mustCompile(t, `{"type":"array","items":{"allOf":[{"$ref":"#/definitions/x"},{"properties":{"b":{}}}],
		"properties":{"a":{"type":"integer"}},"required":["b"]},"definitions":{"x":{"properties":{"c":{"const":3}},"required":["c"]}}}`)
	want = []Property{{Name: "a", Types: []string{"integer"}},
		{Name: "c", Required: true, Enum: []string{"3"}}, {Name: "b", Required: true}}
	if diff := cmp.Diff(want, list.Properties()); diff != "" || !list.IsList() {
		t.Errorf("list %v, properties (-want +got):\n%s", list.IsList(), diff)
	}
	if err := list.Validate(pattern.NewBudget(context.Background(), 1_000_000),
		[]byte(`{"a":1,"b":2,"c":3}`)); err != nil {
		t.Error(err)
	}
	if !want[2].Is("array") || want[0].Is("number") ||
		!(&Property{Types: []string{"number"}}).Is("integer") {
		t.Error("types are taken for others")
	}
}

func TestValidate(t *testing.T) {
	s := mustCompile(t, product)
	for row, problem := range map[string]string{
		`{"name":"A","price":1.50}`:                                     "",
		`{"name":"A","price":1,"rating":null,"images":["x"]}`:           "",
		`{"name":"A","price":1,"seller":{"name":"S"},"currency":"EUR"}`: "",
		`{"name":"A"}`:                          "the whole does not fit \"required\"",
		`{"name":"A","price":"1"}`:              `price does not fit "type"`,
		`{"name":"A","price":-1}`:               `price does not fit "minimum"`,
		`{"name":"","price":1}`:                 `name does not fit "minLength"`,
		`{"name":"A","price":1,"currency":"X"}`: `currency does not fit "enum"`,
		`{"name":"A","price":1,"images":[1]}`:   `images.0 does not fit "type"`,
		`{"name":"A","price":1,"more":1}`:       `the whole does not fit "additionalProperties"`,
		`{"name":"A","price":1e999999999}`:      "price: a number is out of range",
		`{"name":"A","price":1e-401}`:           "price: a number is out of range",
		`[]`:                                    `the whole does not fit "type"`,
		`{"name":`:                              "the row is not JSON: unexpected EOF",
	} {
		err := s.Validate(pattern.NewBudget(context.Background(), 1_000_000), []byte(row))
		switch {
		case problem == "" && err != nil:
			t.Errorf("%s: %v", row, err)
		case problem != "" && (err == nil || err.Error() != "schema: "+problem):
			t.Errorf("%s: %v, want %s", row, err, problem)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ document, field, detail string }{
		{``, "content", "is not JSON"},
		{`{"properties":`, "content", "is not JSON"},
		{`{"properties":{"a":{}}} {}`, "content", "behind its end"},
		{`[]`, "content", "must be a JSON object"},
		{`{"type":"object"}`, "content.properties", "are needed"},
		{`{"type":"array","items":{"type":"string"}}`, "content.items.properties", "are needed"},
		{`{"properties":{}}`, "content.properties", "are needed"},
		{`{"properties":{"a":{"type":"text"}}}`, "content", "is no JSON Schema"},
		{`{"properties":{"a":{"pattern":"("}}}`, "content.properties.a.pattern",
			"is no regular expression"},
		{`{"properties":{"a":{"$ref":"http://127.0.0.1/x.json"}}}`, "content.properties.a.$ref",
			"must not leave"},
		{`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "content.properties.a.$ref",
			"must not leave"},
		{`{"properties":{"a":{"$ref":"other.json#/x"}}}`, "content.properties.a.$ref",
			"must not leave"},
		{`{"$defs":{"x":{"allOf":[{"$ref":"//h/x"}]}},"properties":{"a":{}}}`,
			"content.$defs.x.allOf[0].$ref", "must not leave"},
		{`{"$schema":"https://evil.example/schema","properties":{"a":{}}}`, "content",
			"outside of the document"},
		{`{"$dynamicRef":"#x","properties":{"a":{}}}`, "content.$dynamicRef", "not supported"},
		{`{"properties":{"a":{"$id":"http://x/y","type":"string"}}}`, "content.properties.a.$id",
			"only the whole"},
		{`{"properties":{"a":{"$ref":"#/$defs/none"}}}`, "content", "there is no"},
		{`{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{}]}}}`, "content", "circle"},
		{`{"properties":{"a":{"$ref":"#"}},"allOf":[{"$ref":"#/properties/a"}]}`, "content",
			"circle"},
		{`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, "content",
			"no more than once"},
		{`{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`, "content",
			"no more than once"},
		{`{"$id":"%zz","properties":{"a":{}}}`, "content.$id", "no address"},
		{`{"$id":"http://x/y","properties":{"a":{"$ref":"http://x/z"}}}`,
			"content.properties.a.$ref", "must not leave"},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"a":{}}}`, "content", "circle"},
		{`{"properties":{"__":{}}}`, "content.properties", "a name is needed"},
		{`{"properties":{"_a":{},"a":{}}}`, "content.properties", "another property"},
		{`{"properties":{"$a":{}}}`, "content.properties", "reserved"},
		{`{"properties":{"a\"b":{}}}`, "content.properties", "must not have"},
		{`{"properties":{"a\u202eb":{}}}`, "content.properties", "must not have"},
		{`{"properties":{"a":{"maximum":1e99999}}}`, "content.properties.a.maximum",
			"out of range"},
		{`{"properties":{"a":{"enum":[1,[1e-99999]]}}}`, "content.properties.a.enum",
			"out of range"},
		{`{"properties":{"a":{"pattern":"` + strings.Repeat("a", 600) + `"}}}`,
			"content.properties.a.pattern", "at most 512"},
		{`{"properties":{"a":` + strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40) +
			`}}`, "content", "nests deeper"},
		{`{"properties":{"a":{"enum":[` + strings.Repeat("1,", 6000) + `1]}}}`, "content",
			"more than 5000 values"},
		{`{"properties":{"a":{"enum":["` + strings.Repeat("x", MaxBytes) + `"]}}}`, "content",
			"larger than"},
		{doubling(40), "content", "describes more than"},
		{entangled(24), "content", "describes more than"},
		{manyProperties(600), "content.properties", "more than 500 properties"},
	} {
		_, err := Compile([]byte(c.document))
		var faults fault.List
		if !errors.As(err, &faults) || len(faults) == 0 {
			t.Errorf("%.200s: %v", c.document, err)
			continue
		}
		if f := faults[0]; f.Code != fault.SchemaValidation || f.Field != c.field ||
			!strings.Contains(f.Detail, c.detail) {
			t.Errorf("%.200s: %v, want %s: …%s…", c.document, f, c.field, c.detail)
		}
	}
}

// TestReferences: references are parsed as addresses: with percent escapes, the document's own $id,
// and back to their parents.
func TestReferences(t *testing.T) {
	for _, c := range []struct{ document, row, misfit string }{
		{`{"$defs":{"a b":{"type":"string"}},"properties":{"a":{"$ref":"#/%24defs/a%20b"}}}`,
			`{"a":"x"}`, `{"a":1}`},
		{`{"$defs":{"a%b~/":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/a%25b~0~1"}}}`,
			`{"a":"x"}`, `{"a":1}`},
		{`{"$id":"https://shop.test/row.json","$defs":{"x":{"type":"string"}},"properties":{
			"a":{"$ref":"https://shop.test/row.json#/$defs/x"},"b":{"$ref":"row.json#/$defs/x"},"c":{"$ref":"#/$defs/x"}}}`,
			`{"a":"x","b":"y","c":"z"}`, `{"a":"x","b":2}`},
		{`{"$id":"urn:shop:row","$defs":{"x":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, `{"a":"x"}`, `{"a":1}`},
		{`{"$id":"https://shop.test/row","type":"array","items":{"properties":{"a":{"type":"string"}}}}`, `{"a":"x"}`, `{"a":1}`},
		{`{"properties":{"name":{"type":"string"},"parts":{"type":"array","items":{"$ref":"#"}}}}`,
			`{"name":"a","parts":[{"name":"b","parts":[{"name":"c"}]}]}`,
			`{"name":"a","parts":[{"name":"b","parts":[{"name":1}]}]}`},
		{`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"v":{"type":"integer"}}}`,
			`{"left":{"v":1},"right":{"left":{"v":2}}}`, `{"left":{"right":{"v":"x"}}}`},
		{`{"properties":{"a":{"type":"array","items":{"$ref":"#/properties/a"}}}}`,
			`{"a":[[],[[]]]}`, `{"a":[[1]]}`},
		{`{"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/y"}},"y":{"type":"array","items":{"$ref":"#/$defs/x"}}},
			"properties":{"a":{"$ref":"#/$defs/x"}}}`, `{"a":[[[]]]}`, `{"a":[[["b"]]]}`},
	} {
		s, err := Compile([]byte(c.document))
		if err != nil {
			t.Errorf("%s: %v", c.document, err)
			continue
		}
		b := pattern.NewBudget(context.Background(), 1_000_000)
		if err := s.Validate(b, []byte(c.row)); err != nil {
			t.Errorf("%s: %s: %v", c.document, c.row, err)
		}
		if err := s.Validate(b, []byte(c.misfit)); err == nil {
			t.Errorf("%s: %s fits", c.document, c.misfit)
		}
		answer, err := Compile(s.Answer(true))
		if err != nil {
			t.Errorf("%s: %v", s.Answer(true), err)
			continue
		}
		if err := answer.Validate(b, []byte(`{"rows":[`+c.row+`]}`)); err != nil {
			t.Errorf("%s: %v", s.Answer(true), err)
		}
		if err := answer.Validate(b, []byte(`{"rows":[`+c.misfit+`]}`)); err == nil {
			t.Errorf("%s: %s fits", s.Answer(true), c.misfit)
		}
	}
}

// doubling makes a document of n schemas, each of which refers to the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1,
			i+1)
	}
	return `{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + b.String() +
		fmt.Sprintf(`"d%d":{}}}`, n)
}

// entangled makes a document of n objects, each of which may hold the next one and all before it.
// The paths through them without a repetition are countless.
func entangled(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"x%d":{"properties":{`, i)
		for to := range i {
			fmt.Fprintf(&b, `"p%d":{"$ref":"#/$defs/x%d"},`, to, to)
		}
		fmt.Fprintf(&b, `"next":{"$ref":"#/$defs/x%d"}}},`, min(i+1, n-1))
	}
	return fmt.Sprintf(`{"properties":{"a":{"$ref":"#/$defs/x0"},"b":{"$ref":"#/$defs/x%d"}},"$defs":{%s}}`, n-1,
		strings.TrimSuffix(b.String(), ","))
}

func manyProperties(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf(`"p%d":{}`, i))
	}
	return `{"properties":{` + strings.Join(names, ",") + `}}`
}

// TestAnswer: the response format for a model is itself a schema, including references.
func TestAnswer(t *testing.T) {
	plain := mustCompile(t, product)
	if got := string(plain.Answer(false)); got != product {
		t.Errorf("one row: %s", got)
	}
	list := mustCompile(t,
		`{"type":"array","items":{"properties":{"a":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"type":"integer"}}}`)
	for _, answer := range []json.RawMessage{plain.Answer(true), list.Answer(false)} {
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(nowhere{})
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(location, document); err != nil {
			t.Fatal(err)
		}
		compiled, err := compiler.Compile(location)
		if err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		for row, fits := range map[string]bool{
			`{"rows":[{"name":"A","price":1}]}`:           true,
			`{"rows":[{"name":"A","price":"x","a":"x"}]}`: false,
			`{"rows":[]}`: true, `{}`: false,
		} {
			value, _ := jsonschema.UnmarshalJSON(strings.NewReader(row))
			if err := compiled.Validate(value); (err == nil) != fits {
				t.Errorf("%s: %s: %v", answer, row, err)
			}
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{product, doubling(3), entangled(4),
		`{"properties":{"a":{"type":"array","items":{"$ref":"#/properties/a"}}}}`,
		`{"type":"array","items":{"properties":{"a":{"$ref":"#x"},"b":{"$anchor":"x"}}}}`,
		`{"properties":{"a":{"if":{},"then":{"$ref":"#/properties/b"}},"b":{"items":[{},true]}}}`} {
		f.Add([]byte(seed), []byte(`{"name":"A","price":1,"a":[1,{"b":2e3}]}`))
	}
	f.Fuzz(func(t *testing.T, document, row []byte) {
		s, err := Compile(document)
		if err != nil {
			var faults fault.List
			if !errors.As(err, &faults) {
				t.Fatalf("%q: %v", document, err)
			}
			return
		}
		if len(s.Properties()) == 0 {
			t.Fatalf("%q has no properties", document)
		}
		if s.Validate(pattern.NewBudget(context.Background(), 1_000_000), row) == nil &&
			!json.Valid(row) {
			t.Fatalf("%q fits %q", row, document)
		}
	})
}

// TestPatternsAreBounded: patterns that would compile to very much are refused, alone and together.
// 120 of them took 2.5 GB.
func TestPatternsAreBounded(t *testing.T) {
	schemaOf := func(n int, pattern string) string {
		var properties []string
		for i := range n {
			properties = append(properties,
				fmt.Sprintf(`"p%03d":{"type":"string","pattern":%q}`, i,
					fmt.Sprintf("%s%d", pattern, i)))
		}
		return `{"properties":{` + strings.Join(properties, ",") + `}}`
	}
	large, taken := strings.Repeat(`(\pL{100}){10}`, 26), strings.Repeat("a{0,999}", 3)
	for document, field := range map[string]string{
		schemaOf(120, large): "content.properties.p000.pattern",
		schemaOf(120, taken): "content.properties.p008.pattern",
		`{"properties":{"a":{"type":"object","patternProperties":{"` + strings.Repeat("a{999}",
			80) + `":{}}}}}`: "content.properties.a.patternProperties",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Compile([]byte(document))
		runtime.ReadMemStats(&after)
		var faults fault.List
		if !errors.As(err, &faults) || faults[0].Field != field ||
			faults[0].Code != fault.SchemaValidation {
			t.Errorf("%v, want a fault of %s", err, field)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 100<<20 {
			t.Errorf("%s: %d MB were allocated", field, made>>20)
		}
	}
	if _, err := Compile([]byte(schemaOf(120, `^[A-Z]{2}-[0-9]{1,20}$`))); err != nil {
		t.Errorf("120 ordinary patterns: %v", err)
	}
}

// TestPatternsArePaid: the budget pays for a schema's patterns, even with several rows at a time.
func TestPatternsArePaid(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"a":{"type":"string","pattern":"` +
		strings.Repeat("a{0,999}", 3) + `z"}},"patternProperties":{"^b":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	row := []byte(`{"a":"` + strings.Repeat("a", 500) + `","b":"c"}`)
	var group sync.WaitGroup
	for range 2 * maxIdle {
		group.Go(func() {
			poor, rich := pattern.NewBudget(context.Background(), 100_000),
				pattern.NewBudget(context.Background(), 10_000_000)
			if s.Validate(poor, row) == nil || !errors.Is(poor.Err(), pattern.ErrExhausted) {
				t.Errorf("with a few steps: %v", poor.Err())
			}
			var mismatch *Mismatch
			if err := s.Validate(rich, row); !errors.As(err, &mismatch) ||
				mismatch.Property != "a" || rich.Err() != nil ||
				rich.Left() > 10_000_000-500*1_400 {
				t.Errorf("with ten millions: %v, %v, %d steps are left", err, rich.Err(),
					rich.Left())
			}
		})
	}
	group.Wait()
}
