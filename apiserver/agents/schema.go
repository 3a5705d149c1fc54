package agents

import (
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// outputOf describes what programs go on with of a tool's answer: the members of its result that
// are never null, by their types. What is in them the answer itself shows, and so does a list. nil:
// the tool answers nothing, or a list alone.
func outputOf(t *operation.Tool) *jsonschema.Schema {
	if t.Result == nil || t.Listed && t.Agents == operation.Reads {
		return nil
	}
	made := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
		"result": shallow(t.Result, t.Result.Defs)}, PropertyOrder: []string{"result"}}
	add := func(name, kind string) {
		made.Properties[name] = &jsonschema.Schema{Type: kind}
		made.PropertyOrder = append(made.PropertyOrder, name)
	}
	if t.Streams() || t.Later {
		add("unfinished", "boolean")
	}
	if t.Later {
		add(operation.KeyArgument, "string")
	}
	if t.Agents == operation.Spends {
		add("cost", "object")
	}
	return made
}

// shallow is a schema of an answer, in which each member has its type alone.
func shallow(s *jsonschema.Schema, defs map[string]*jsonschema.Schema) *jsonschema.Schema {
	made := typed(s, defs)
	whole := s
	for _, one := range append([]*jsonschema.Schema{s}, s.AnyOf...) {
		if name, is := strings.CutPrefix(one.Ref, "#/$defs/"); is {
			whole = defs[name]
		}
	}
	if len(whole.Properties) == 0 {
		return made
	}
	made.Properties, made.PropertyOrder = map[string]*jsonschema.Schema{}, whole.PropertyOrder
	for name, member := range whole.Properties {
		if as := typed(member, defs); as.Type != "" {
			made.Properties[name] = as
		}
	}
	return made
}

// typed is a schema's type alone, of several when it may be null.
func typed(s *jsonschema.Schema, defs map[string]*jsonschema.Schema) *jsonschema.Schema {
	if name, is := strings.CutPrefix(s.Ref, "#/$defs/"); is {
		return typed(defs[name], defs)
	}
	made := &jsonschema.Schema{Type: s.Type, Types: s.Types}
	for _, one := range s.AnyOf {
		inner := typed(one, defs)
		made.Types = append(append(made.Types, inner.Types...), inner.Type)
	}
	return made
}
