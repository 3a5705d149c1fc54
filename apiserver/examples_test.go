package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// TestEveryOperationHasExamples: every operation has examples of its members in examples.go, and
// every example there is used.
func TestEveryOperationHasExamples(t *testing.T) {
	ops := newTestServer(t).operations()
	missing, unused := operation.Lacking(about(), ops)
	for _, name := range missing {
		t.Errorf("%s has no example in examples.go", name)
	}
	for _, name := range unused {
		t.Errorf("examples.go has %q, which nothing uses", name)
	}
}

// TestExamplesAreGivenOnce: if two tables had the same name, the later one would win.
func TestExamplesAreGivenOnce(t *testing.T) {
	given := 0
	for _, table := range exampleTables() {
		given += len(table)
	}
	if once := len(examples()); once != given {
		t.Errorf("%d names of %d are given once", once, given)
	}
}

// TestExamplesAreWhatTheyAreExamplesOf checks every example of the description against the schema
// beside it.
func TestExamplesAreWhatTheyAreExamplesOf(t *testing.T) {
	ops := newTestServer(t).operations()
	text, err := document(ops)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("mem:doc", parsed); err != nil {
		t.Fatal(err)
	}
	held := 0
	eachExample(parsed, "", func(at string, example any) {
		schema, err := compiler.Compile("mem:doc#" + at + "/schema")
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if err := schema.Validate(example); err != nil {
			shown, _ := json.Marshal(example) // it was decoded from JSON
			t.Errorf("%s: %s: %v", at, shown, err)
		}
		held++
	})
	if held < len(ops) {
		t.Errorf("only %d examples for %d operations", held, len(ops))
	}
}

// eachExample finds objects with both a schema and an example, each with its JSON pointer.
func eachExample(value any, at string, found func(at string, example any)) {
	switch v := value.(type) {
	case map[string]any:
		if example, ok := v["example"]; ok && v["schema"] != nil {
			found(at, example)
			return
		}
		for name, member := range v {
			eachExample(member, at+"/"+escapePointer(name), found)
		}
	case []any:
		for i, item := range v {
			eachExample(item, fmt.Sprint(at, "/", i), found)
		}
	}
}

// escapePointer escapes a name for a JSON pointer in a URL.
func escapePointer(name string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}
