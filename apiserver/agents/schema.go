package agents

import (
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// outputOf describes the part of an answer that programs build on: the members of its result that
// are never null, with their types. Deeper levels and lists show in the answer itself. It returns
// nil if the tool answers nothing, or only a list.
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

// shallow is the schema of an answer in which members have only a type.
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

// typed is only the type of a schema; a nullable one has several.
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
