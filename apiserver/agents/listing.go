package agents

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/operation"
)

const (
	// toolsPerPage is the page size of tools/list. The first page has the tools that read pages.
	toolsPerPage = 60
	// maxAbout and maxDoc bound the description of a tool and of an argument, bytes. The first
	// sentence is always kept.
	maxAbout = 240
	maxDoc   = 80
)

// newer is the suffix of a tool that replaces the tool without it.
const newer = "_v2"

// inOrder returns the tools in the order of the list: as operations are declared, but replaced
// tools last.
func inOrder(tools []*operation.Tool) []*operation.Tool {
	replaced := func(t *operation.Tool) int {
		if slices.ContainsFunc(tools, func(o *operation.Tool) bool { return o.ID == t.ID+newer }) {
			return 1
		}
		return 0
	}
	sorted := slices.Clone(tools)
	slices.SortStableFunc(sorted, func(a, b *operation.Tool) int {
		return replaced(a) - replaced(b)
	})
	return sorted
}

// listing makes tools as clients see them. It keeps them short, because clients send the whole list
// to their model. One tool describes a component and the others refer to it. Rules that the
// operation checks anyway are left out. shoal://tools/{name} shows everything.
type listing struct{ homes map[string][]*operation.Tool }

// describe makes a tool as clients see it.
func (l *listing) describe(t *operation.Tool) *mcp.Tool {
	is := t.Hints()
	text := t.Summary + "."
	if about := cmp.Or(t.ToAgents, t.About()); about != "" {
		text += " " + about
	}
	switch text = firstOf(text, maxAbout); {
	case t.Agents == operation.Spends:
		text += " Costs up to maxChargeMicros."
	case t.Streams():
		text += " Waits up to 55 s; while the answer says unfinished, call again."
	case t.Later:
		text += " Waits up to 55 s; while the answer says unfinished, call again with its " +
			operation.KeyArgument + "."
	}
	made := &mcp.Tool{Name: t.ID, Description: text, InputSchema: l.input(t),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: is.ReadOnly,
			DestructiveHint: &is.Destructive, IdempotentHint: is.Idempotent,
			OpenWorldHint: &is.OpenWorld}}
	if output := outputOf(t); output != nil {
		made.OutputSchema = output
	}
	return made
}

// input describes the arguments of a tool. A component may already be described by another tool
// that every caller of this one sees. It then refers to that tool.
func (l *listing) input(t *operation.Tool) *jsonschema.Schema {
	elsewhere := map[string]string{}
	for name, component := range t.Input.Defs {
		if component.Type != "object" {
			continue
		}
		i := slices.IndexFunc(l.homes[name], func(home *operation.Tool) bool {
			return seenWith(home, t)
		})
		if i >= 0 {
			elsewhere[name] = l.homes[name][i].ID
		}
	}
	made := short(t.Input)
	made.AdditionalProperties = nil
	delete(made.Properties, operation.CursorArgument)
	if t.HasCursor() || t.Listed {
		made.Properties[operation.CursorArgument] = &jsonschema.Schema{Type: "string"}
	}
	if key := made.Properties[operation.KeyArgument]; key != nil {
		key.Description = ""
	}
	needed := map[string]*jsonschema.Schema{}
	var keep func(s *jsonschema.Schema)
	keep = func(s *jsonschema.Schema) {
		name, is := strings.CutPrefix(s.Ref, "#/$defs/")
		switch {
		case is && elsewhere[name] != "":
			s.Ref, s.Type = "", "object"
			s.Description = strings.TrimSpace(s.Description + " As in " + elsewhere[name])
		case is && needed[name] == nil:
			needed[name] = short(t.Input.Defs[name])
			keep(needed[name])
		}
		for _, inner := range inside(s) {
			keep(inner)
		}
	}
	keep(made)
	for name := range needed {
		l.homes[name] = append(l.homes[name], t)
	}
	made.Defs = needed
	return made
}

// seenWith reports whether everyone who sees t also sees home.
func seenWith(home, t *operation.Tool) bool {
	return (home.Access == auth.Read || home.Access == t.Access) &&
		(home.Feature == "" || home.Feature == t.Feature)
}

// short is a schema without what the operation checks itself and explains when it refuses: bounds,
// patterns, and that null means absent.
func short(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		made := short(s.AnyOf[0])
		made.Description = firstOf(s.Description, maxDoc)
		return made
	}
	made := &jsonschema.Schema{Ref: s.Ref, Type: s.Type, Required: s.Required,
		PropertyOrder: s.PropertyOrder, Description: firstOf(s.Description, maxDoc)}
	if types := slices.DeleteFunc(slices.Clone(s.Types), isNull); len(types) == 1 {
		made.Type = types[0]
	} else {
		made.Types = types
	}
	if !slices.Contains(unsaid, string(s.Default)) {
		made.Default = s.Default
	}
	for _, value := range s.Enum {
		if value != nil {
			made.Enum = append(made.Enum, value)
		}
	}
	if s.Items != nil {
		made.Items = short(s.Items)
	}
	if more := s.AdditionalProperties; more != nil && more.Not == nil {
		made.AdditionalProperties = short(more)
	}
	for _, one := range s.AnyOf {
		made.AnyOf = append(made.AnyOf, short(one))
	}
	if s.Properties != nil {
		made.Properties = map[string]*jsonschema.Schema{}
	}
	for name, member := range s.Properties {
		if !member.ReadOnly {
			made.Properties[name] = short(member)
		}
	}
	return made
}

// unsaid are defaults that need not be stated.
var unsaid = []string{"false", "0", `""`}

func isNull(name string) bool { return name == "null" }

// inside are the schemas nested in a short one.
func inside(s *jsonschema.Schema) []*jsonschema.Schema {
	inner := slices.Clone(s.AnyOf)
	for _, member := range s.Properties {
		inner = append(inner, member)
	}
	for _, one := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if one != nil {
			inner = append(inner, one)
		}
	}
	return inner
}

// firstOf returns as many leading sentences of a text as fit, at least one.
func firstOf(text string, most int) string {
	sentences := strings.SplitAfter(text, ". ")
	kept := sentences[0]
	for _, next := range sentences[1:] {
		if len(kept)+len(next) > most {
			break
		}
		kept += next
	}
	return strings.TrimSpace(kept)
}

// listTools answers tools/list in pages, with the tools that the caller's scope and plan allow.
func (g *Gateway) listTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		asked, is := request.(*mcp.ListToolsRequest)
		from, _ := callerOf(request)
		if !is || from == nil {
			return next(ctx, method, request)
		}
		begin := 0
		if asked.Params != nil && asked.Params.Cursor != "" {
			var err error
			begin, err = strconv.Atoi(asked.Params.Cursor)
			if err != nil || begin <= 0 {
				return nil, errListCursor
			}
			asked.Params.Cursor = ""
		}
		result, err := next(ctx, method, request)
		list, is := result.(*mcp.ListToolsResult)
		if err != nil || !is {
			return result, err
		}
		list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool {
			return g.ranks[t.Name] < begin || g.isHidden(t.Name, from)
		})
		slices.SortStableFunc(list.Tools, func(a, b *mcp.Tool) int {
			return g.ranks[a.Name] - g.ranks[b.Name]
		})
		if len(list.Tools) > toolsPerPage {
			list.NextCursor = strconv.Itoa(g.ranks[list.Tools[toolsPerPage].Name])
			list.Tools = list.Tools[:toolsPerPage]
		}
		return list, nil
	}
}

var errListCursor = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
	Message: "the cursor is not that of the page before"}

// isHidden reports whether the caller's scope or plan would refuse a tool.
func (g *Gateway) isHidden(name string, from *operation.Caller) bool {
	t, known := g.tools[name]
	return known && (t.Access.Check(&from.Principal) != nil || t.Feature != "" &&
		g.chain.Plans.Check(g.client.View(), from.Customer, t.Feature) != nil)
}
