package operation

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// brief shortens an answer's schema, since an agent's client sends every tool's schema to its
// model. It keeps descriptions of the answer's members and of the items of its lists. Deeper
// members keep only their type.
func brief(answer *jsonschema.Schema) {
	kept := map[string]bool{}
	keep := func(s *jsonschema.Schema) {
		if s != nil && s.Ref != "" {
			kept[s.Ref[len(defs):]] = true
		}
	}
	keep(answer.Items)
	for _, root := range append(slices.Clone(answer.AnyOf), answer) { // it may be null
		keep(root)
		if whole := answer.Defs[nameOf(root)]; whole != nil {
			for _, member := range whole.Properties {
				keep(member.Items)
			}
		}
	}
	for name := range kept {
		for _, member := range answer.Defs[name].Properties {
			shorten(member, kept, answer.Defs)
		}
	}
	maps.DeleteFunc(answer.Defs, func(name string, _ *jsonschema.Schema) bool {
		return !kept[name]
	})
}

// nameOf is the name of the component that a schema refers to, "" if it refers to none.
func nameOf(s *jsonschema.Schema) string {
	if s.Ref == "" {
		return ""
	}
	return s.Ref[len(defs):]
}

// shorten replaces references to components that are not kept with their types.
func shorten(s *jsonschema.Schema, kept map[string]bool, all map[string]*jsonschema.Schema) {
	if s == nil {
		return
	}
	if name := nameOf(s); name != "" && !kept[name] {
		s.Ref, s.Type, s.Types = "", all[name].Type, slices.Clone(all[name].Types)
	}
	for _, inner := range s.AnyOf {
		shorten(inner, kept, all)
	}
	shorten(s.Items, kept, all)
	shorten(s.AdditionalProperties, kept, all)
}
