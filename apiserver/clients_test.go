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

// notForClients are the groups of operations that the clients lack. They are for operators,
// browsers, probes and the libraries of other protocols. Files are sent by what sends files.
var notForClients = []string{"Administration", "Agents", "File uploads", "Passkeys", "Programs",
	"Sign-in", "System"}

// unsaid are members of schemas and parameters by which a server judges, and a client does not.
var unsaid = []string{"allOf", "default", "else", "example", "examples",
	"if", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "not", "pattern",
	"propertyNames", "then", "uniqueItems"}

// TestClientsAreMadeOfTheDescription holds what the clients are generated from to the description
// of the API. It has the operations of customers, and the refusals of each as one answer. So that
// clients are short it has no rule of what is in a request. -update writes it anew.
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

// The client in Go has no value for null, which its pointers say.
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

// The client in Go has numbers of 64 bits on all machines. The one in Python waits for as long as
// calls do that wait by design.
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

// forClients pares the description.
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

// oneForm leaves of a body's forms JSON, or else one that is a text. So generators tell what it is.
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

// pare leaves out what clients do without. What is called like a rule and is a member of something
// stays.
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
				value["additionalProperties"] = false // clients pass over what they do not know
				if value["required"] == nil {
					value["required"] = []any{} // not all, as one of them would have it
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
