package schema

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
)

// TestRowsArePaid checks rows that take a lot by each keyword: the budget ends before the library
// has taken much memory. A row of the same size that takes little passes.
func TestRowsArePaid(t *testing.T) {
	alternatives := func(of string, n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(of, i)
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	consts := alternatives(`{"const":"%d"}`, 1_900)
	texts := `{"a":[` + strings.Repeat(`"x",`, 4_000) + `"y"]}`
	long := `{"a":"` + strings.Repeat("x", 400_000) + `"}`
	wide := strings.Trim(alternatives(`"m%d":1`, 5_000), "[]")
	for what, c := range map[string]struct{ schema, row string }{
		"alternatives":        {`{"items":{"anyOf":` + consts + `}}`, texts},
		"one of":              {`{"items":{"oneOf":` + consts + `}}`, texts},
		"all of":              {`{"items":{"allOf":` + alternatives(`{"minLength":%d}`, 1_900) + `}}`, texts},
		"values":              {`{"items":{"enum":` + alternatives(`"%d"`, 4_000) + `}}`, texts},
		"constant objects":    {`{"items":{"const":` + alternatives(`%d`, 4_000) + `}}`, texts},
		"contained ones":      {`{"contains":{"not":{"anyOf":` + consts + `}}}`, texts},
		"wide objects":        {`{"anyOf":` + alternatives(`{"minProperties":%d}`, 1_900) + `}`, `{"a":{` + wide + `}}`},
		"additional members":  {`{"additionalProperties":{"anyOf":` + consts + `}}`, `{"a":{` + wide + `}}`},
		"names":               {`{"propertyNames":{"anyOf":` + consts + `}}`, `{"a":{` + wide + `}}`},
		"what none looked at": {`{"unevaluatedProperties":{"anyOf":` + consts + `}}`, `{"a":{` + wide + `}}`},
		"lengths":             {`{"allOf":` + alternatives(`{"minLength":%d}`, 1_000) + `}`, long},
		"formats":             {`{"allOf":` + alternatives(`{"format":"uri","title":"%d"}`, 1_000) + `}`, long},
		"unique long ones": {`{"items":{"anyOf":` +
			alternatives(`{"uniqueItems":true,"minItems":%d}`, 1_000) + `}}`,
			`{"a":[["` + strings.Repeat("x", 400_000) + `"]]}`},
		"expressions": {`{"items":{"format":"regex"}}`, texts},
		"unique ones": {`{"anyOf":` + alternatives(`{"uniqueItems":true,"minItems":%d}`, 1_000) + `}`, texts},
	} {
		s := mustCompile(t, `{"properties":{"a":`+c.schema+`,"b":{}}}`)
		budget := pattern.NewBudget(context.Background(), 50_000_000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.Validate(budget, []byte(c.row))
		runtime.ReadMemStats(&after)
		if err == nil || budget.Left() != 50_000_000-maxRowSteps {
			t.Errorf("%s: %v, %d steps are left", what, err, budget.Left())
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 {
			t.Errorf("%s: %d MB were allocated", what, made>>20)
		}
		budget = pattern.NewBudget(context.Background(), 50_000_000)
		other := `{"b":` + strings.TrimPrefix(c.row, `{"a":`)
		if err := s.Validate(budget, []byte(other)); err != nil || budget.Left() < 49_900_000 {
			t.Errorf("%s: under another property: %v, %d steps are left", what, err, budget.Left())
		}
	}
}

// TestLargeRowsArePaid checks large rows of usual schemas.
func TestLargeRowsArePaid(t *testing.T) {
	optional := func(kind string) string { return `{"anyOf":[{"type":"` + kind + `"},{"type":"null"}]}` }
	numbers := func(n int) string { return "[" + strings.Repeat("7,", n-1) + "7]" }
	var members []string
	for i := range 60 {
		members = append(members, fmt.Sprintf(`"m%d":%d`, i, i))
	}
	object := "{" + strings.Join(members, ",") + "}"
	integers := strings.ReplaceAll(strings.Join(members, "|"), "|", ",")
	for i := range 60 {
		integers = strings.Replace(integers, fmt.Sprintf(`"m%d":%d`, i, i),
			fmt.Sprintf(`"m%d":{"type":"integer"}`, i), 1)
	}
	for what, c := range map[string]struct{ schema, row string }{
		"reviews": {`{"type":"array","items":{"type":"object","properties":{"by":` + optional("string") +
			`,"stars":` + optional("number") + `,"text":` + optional("string") + `}}}`,
			"[" + strings.Repeat(`{"by":"a","stars":5,"text":"b"},`, 11_000) + "{}]"},
		"records": {`{"type":"array","items":{"type":"object","properties":{` + integers +
			`},"additionalProperties":{"type":"integer"}}}`,
			"[" + strings.Repeat(object+",", 1_900) + "{}]"},
		"tables": {`{"type":"array","items":{"type":"array","items":{"type":"number"}}}`,
			"[" + strings.Repeat(numbers(1_000)+",", 90) + "[]]"},
	} {
		s := mustCompile(t, `{"properties":{"a":`+c.schema+`}}`)
		budget := pattern.NewBudget(context.Background(), 50_000_000)
		if err := s.Validate(budget, []byte(`{"a":`+c.row+`}`)); err != nil {
			t.Errorf("%s of %d bytes: %v", what, len(c.row), err)
		}
	}
}

// TestReferencesAreBounded compiles schemas that refer to each other in any way: it ends, and the
// properties that it lists are bounded.
func TestReferencesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "schemas")
		schemaOf := func() string {
			ref := func() string {
				return fmt.Sprintf(`{"$ref":"#/$defs/x%d"}`, rapid.IntRange(0, n-1).Draw(t, "to"))
			}
			var members []string
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"$ref", "items",
				"properties", "allOf", "anyOf", "prefixItems", "additionalProperties"}), 0, 3,
				rapid.ID[string]).Draw(t, "keys") {
				switch key {
				case "$ref":
					members = append(members, strings.Trim(ref(), "{}"))
				case "items", "additionalProperties":
					members = append(members, fmt.Sprintf("%q:%s", key, ref()))
				case "properties":
					var named []string
					for i := range rapid.IntRange(1, 6).Draw(t, "properties") {
						named = append(named, fmt.Sprintf(`"p%d":%s`, i, ref()))
					}
					members = append(members, `"properties":{`+strings.Join(named, ",")+`}`)
				default:
					members = append(members, fmt.Sprintf("%q:[%s]", key, ref()))
				}
			}
			return "{" + strings.Join(members, ",") + "}"
		}
		defs := make([]string, n)
		for i := range defs {
			defs[i] = fmt.Sprintf(`"x%d":%s`, i, schemaOf())
		}
		document := `{"properties":{"a":{"$ref":"#/$defs/x0"}},"$defs":{` +
			strings.Join(defs, ",") + `}}`
		s, err := Compile([]byte(document))
		var faults fault.List
		if err != nil && !errors.As(err, &faults) {
			t.Fatalf("%s: %v", document, err)
		}
		if err != nil {
			return
		}
		if count := countProperties(s.Properties()); count > maxListed {
			t.Fatalf("%s lists %d properties", document, count)
		}
	})
}

func countProperties(all []Property) int {
	count := len(all)
	for _, p := range all {
		count += countProperties(p.Properties)
		if p.Items != nil {
			count += countProperties([]Property{*p.Items})
		}
	}
	return count
}
