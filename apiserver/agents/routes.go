package agents

import (
	"regexp"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// routeIn matches an operation's route in a text, such as POST /api/scraper/url-list-run. A ?
// before parameters is a part of it.
var routeIn = regexp.MustCompile(`\b(GET|PUT|POST|DELETE) /api/[\w/-]+\??`)

// nameTools replaces routes of tools in a refusal by the tools' names: agents have no routes.
func (g *Gateway) nameTools(p *operation.Problem) {
	said := func(text string) string {
		text = routeIn.ReplaceAllStringFunc(text, g.nameTool)
		return strings.ReplaceAll(text, keyHeader, operation.KeyArgument)
	}
	p.Detail = said(p.Detail)
	for i := range p.Errors {
		item := &p.Errors[i]
		item.Message, item.Field = said(item.Message), said(item.Field)
	}
}

// keyHeader is the header that a tool has as an argument.
const keyHeader = "Idempotency-Key"

// nameTool returns the tool of a route, or the route itself if agents do not have its operation.
func (g *Gateway) nameTool(route string) string {
	method, path, _ := strings.Cut(route, " ")
	path, _, asks := strings.Cut(path, "?")
	found, fewest := route, strings.Count(path, "/")+1
	for id, tool := range g.tools {
		for _, r := range tool.Routes {
			// A fixed path goes before one with parameters.
			if n := strings.Count(r.Path, "{"); r.Method == method && n < fewest &&
				fits(r.Path, path) {
				found, fewest = id, n
			}
		}
	}
	if asks && found != route {
		found += " with "
	}
	return found
}

// fits reports whether a path is that of a route, whose parameters may be anything.
func fits(route, path string) bool {
	return slices.EqualFunc(strings.Split(route, "/"), strings.Split(path, "/"),
		func(want, part string) bool { return want == part || strings.HasPrefix(want, "{") })
}
