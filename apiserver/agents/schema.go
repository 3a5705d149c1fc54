package agents

import (
	"maps"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// outputOf describes what a tool answers.
func outputOf(t *operation.Tool) *jsonschema.Schema {
	text := func(doc string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Description: doc}
	}
	yes := func(doc string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "boolean", Description: doc}
	}
	made := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
		"error": {Type: "object", Description: "Why the call was refused",
			Properties: map[string]*jsonschema.Schema{"code": text("For programs"),
				"detail": text("In words")}},
	}, PropertyOrder: []string{"result", "error"}}
	add := func(name string, schema *jsonschema.Schema) {
		made.Properties[name] = schema
		made.PropertyOrder = append(made.PropertyOrder, name)
	}
	if t.Result != nil {
		result := *t.Result
		made.Defs, result.Defs = maps.Clone(result.Defs), nil
		made.Properties["result"] = &result
		add("truncated", yes("There is more"))
		add("cursor", text("Leads to the rest, with otherwise equal arguments"))
		add("part", text("In place of result: a part of its JSON, where one item is too long"))
	}
	if t.Streams() {
		add("unfinished", yes("The run goes on: call again with the same arguments"))
	}
	if t.Agents == operation.Spends {
		add("cost", &jsonschema.Schema{Type: "object", Description: "What it has cost so far",
			Properties: map[string]*jsonschema.Schema{"jobId": text("The run"),
				"chargedMicros": {Type: "integer",
					Description: "In micros, millionths of a euro"}}})
		add("reason", text("Why there are no rows"))
	}
	return made
}
