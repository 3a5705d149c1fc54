package apiserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notForClients are the groups of operations that clients leave out. They are for operators,
// browsers, probes and libraries of other protocols. Uploads use general tools.
var notForClients = []string{"Administration", "Agents", "File uploads", "Passkeys", "Programs",
	"Sign-in", "System"}

// unsaid are keywords of schemas and parameters that a server checks and a client does not need.
var unsaid = []string{"allOf", "default", "else", "example", "examples",
	"if", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "not", "pattern",
	"propertyNames", "then", "uniqueItems"}

// TestClientsAreMadeOfTheDescription compares the source of generated clients with the API's
// description. The source has customers' operations, one answer for all refusals of each, and no
// rules for requests, so that clients stay short. -update rewrites it.
func TestClientsAreMadeOfTheDescription(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	var pared bytes.Buffer
	encoder := json.NewEncoder(&pared)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(forClients(whole)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "clients", "description.json")
	if *update {
		if err := os.WriteFile(path, pared.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, pared.Bytes()) {
		t.Errorf("%s is not what the description says: run the test with -update, then make "+
			"clients", path)
	}
}

// The Go client has no constant for null; it uses pointers.
func TestNullIsNoValueOfClients(t *testing.T) {
	made, err := os.ReadFile(filepath.Join("..", "clients", "go", "shoal", "shoal.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(made, []byte("type GroupInputStartType string")) ||
		bytes.Contains(made, []byte(`"<nil>"`)) {
		t.Error("the client in Go has a text <nil>: see clients/go/prepare.py")
	}
}

// The Go client has 64-bit numbers on all machines. The Python client waits as long as the longest
// calls do by design.
func TestClientsBear(t *testing.T) {
	made, err := os.ReadFile(filepath.Join("..", "clients", "go", "shoal", "shoal.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	if short := regexp.MustCompile(`\b(float32|\*?int) +.json:.*`).Find(made); short != nil {
		t.Errorf("the client in Go has %q: see clients/go/prepare.py", short)
	}
	config, err := os.ReadFile("../clients/python/shoal_client/config.py")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(config, []byte("timeout: float | None = 120.0\n")) {
		t.Error("the client in Python waits for another time: see clients/generate")
	}
}

// Each client has a type for refusals. The Go client takes no export for one.
func TestClientsKnowRefusals(t *testing.T) {
	for path, want := range map[string]string{
		"go/shoal/shoal.gen.go":          "ApplicationproblemJSONDefault *Problem",
		"python/shoal_client/schemas.py": "class Problem(",
		"typescript/schema.gen.ts":       `"application/problem+json": components["schemas"]["Problem"]`,
	} {
		made, err := os.ReadFile(filepath.Join("..", "clients", path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(made, []byte(want)) || bytes.Contains(made, []byte(`"json") && true:`)) {
			t.Errorf("clients/%s has no %s, or takes lines of JSON for one", path, want)
		}
	}
}

// forClients removes what clients do not need from the description.
func forClients(whole map[string]any) map[string]any {
	paths, all := map[string]any{}, whole["paths"].(map[string]any)
	for path, methods := range all {
		for method, op := range methods.(map[string]any) {
			op := op.(map[string]any)
			description := op["description"].(string)
			if slices.Contains(notForClients, op["tags"].([]any)[0].(string)) ||
				strings.Contains(description, "Access: admin.") {
				continue
			}
			if paths[path] == nil {
				paths[path] = map[string]any{}
			}
			answers := op["responses"].(map[string]any)
			maps.DeleteFunc(answers, func(status string, _ any) bool { return status >= "4" })
			answers["default"] = map[string]any{"description": "Refused", "content": map[string]any{
				"application/problem+json": map[string]any{
					"schema": map[string]any{"$ref": "#/components/schemas/Problem"}}}}
			for _, answer := range answers {
				oneForm(answer)
			}
			oneForm(op["requestBody"])
			op["description"], _, _ = strings.Cut(description, "\n\n")
			delete(op, "x-agents")
			paths[path].(map[string]any)[method] = pare(op)
		}
	}
	components := whole["components"].(map[string]any)
	schemas := components["schemas"].(map[string]any)
	needed := map[string]any{}
	var need func(value any)
	need = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, one := range value {
				need(one)
			}
		case map[string]any:
			for _, one := range value {
				need(one)
			}
			ref, _ := value["$ref"].(string)
			name := ref[strings.LastIndexByte(ref, '/')+1:]
			if name != "" && needed[name] == nil {
				needed[name] = pare(schemas[name])
				need(needed[name])
			}
		}
	}
	need(paths)
	info := whole["info"].(map[string]any)
	return map[string]any{"openapi": whole["openapi"], "paths": paths,
		"security": []any{map[string]any{"bearer": []any{}}},
		"info":     map[string]any{"title": info["title"], "version": info["version"]},
		"components": map[string]any{"schemas": needed,
			"securitySchemes": components["securitySchemes"]}}
}

// oneForm keeps one media type of a body, JSON or else a text, so that generators know its type.
func oneForm(body any) {
	said, _ := body.(map[string]any)
	forms, _ := said["content"].(map[string]any)
	for _, form := range []string{"application/json", "application/x-ndjson", "text/csv",
		"text/event-stream"} {
		only, is := forms[form]
		if !is {
			continue
		}
		if form != "application/json" {
			only = map[string]any{"schema": map[string]any{"type": "string"}}
		}
		said["content"] = map[string]any{form: only}
		return
	}
}

// pare removes the unsaid keywords. A member or an answer that is only named like one stays.
func pare(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = pare(value[i])
		}
	case map[string]any:
		for name, inner := range value {
			if name == "properties" {
				for _, member := range inner.(map[string]any) {
					pare(member)
				}
				value["additionalProperties"] = false // clients ignore unknown members
				if value["required"] == nil {
					value["required"] = []any{} // one generator would require all members otherwise
				}
			} else if name == "responses" {
				for _, answer := range inner.(map[string]any) {
					pare(answer)
				}
			} else if slices.Contains(unsaid, name) {
				delete(value, name)
			} else {
				value[name] = pare(inner)
			}
		}
	}
	return value
}
