package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// scheme is the URI scheme of resources.
const scheme = "shoal://"

const jsonType = "application/json"

// addResources makes groups, runs and rows readable by URI, with the same answers as the tools.
func (g *Gateway) addResources() {
	for _, r := range []struct{ address, name, title, tool, argument string }{
		{"groups", "groups", "All groups of the customer", "svc_list_groups", ""},
		{"jobs", "jobs", "The newest runs", "svc_list_scraper_jobs", ""},
		{"groups/{id}/rows", "rows", "The first rows of a group", "svc_get_data", "groupId"},
		{"scrapers/{id}", "scraper", "A scraper", "svc_get_scraper_v2", "id"},
		{"jobs/{id}", "job", "State and progress of a run", "svc_stream_scraper_job", "id"},
	} {
		tool := g.tools[r.tool]
		if tool == nil {
			continue // this gateway lacks the operation
		}
		handler := g.readBy(tool, r.argument)
		if r.argument == "" {
			g.server.AddResource(&mcp.Resource{URI: scheme + r.address, Name: r.name,
				Title: r.title, MIMEType: jsonType}, handler)
			continue
		}
		g.server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: scheme + r.address,
			Name: r.name, Title: r.title, MIMEType: jsonType}, handler)
	}
	g.server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: scheme + "tools/{name}",
		Name: "tool", Title: "A tool's full input and output", MIMEType: jsonType}, g.readTool)
}

// readTool returns the full description of a tool, including what the list leaves out.
func (g *Gateway) readTool(_ context.Context, request *mcp.ReadResourceRequest) (
	*mcp.ReadResourceResult, error) {
	from, _ := callerOf(request)
	if from == nil {
		return nil, errNobody
	}
	uri := request.Params.URI
	t := g.tools[strings.TrimPrefix(uri, scheme+"tools/")]
	if t == nil || g.isHidden(t.ID, from) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	text, err := json.Marshal(struct {
		Description  string             `json:"description"`
		InputSchema  *jsonschema.Schema `json:"inputSchema"`
		ResultSchema *jsonschema.Schema `json:"resultSchema,omitempty"`
	}{strings.TrimSpace(t.Summary + ". " + t.About()), t.Input, t.Result})
	if err != nil {
		return nil, fmt.Errorf("agents: tool %s: %w", t.ID, err)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri,
		MIMEType: jsonType, Text: string(text)}}}, nil
}

// readBy reads a resource by calling a tool. argument receives the second segment of the URI.
func (g *Gateway) readBy(t *operation.Tool, argument string) mcp.ResourceHandler {
	return func(ctx context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult,
		error) {
		from, credential := callerOf(request)
		if from == nil {
			return nil, errNobody
		}
		uri := request.Params.URI
		with := map[string]string{}
		if argument != "" {
			parts := strings.Split(strings.TrimPrefix(uri, scheme), "/")
			if len(parts) < 2 {
				return nil, mcp.ResourceNotFoundError(uri)
			}
			with[argument] = parts[1]
		}
		args, err := json.Marshal(with)
		if err != nil {
			return nil, err
		}
		out, err := g.call(ctx, t, &calling{Inside: operation.Inside{Outer: from,
			Credential: credential}, args: args, glance: true})
		if ctx.Err() != nil {
			return nil, errCancelled
		}
		if err != nil {
			return nil, err
		}
		if failed := out.Error; failed != nil {
			if failed.Status == http.StatusNotFound || failed.Status == http.StatusBadRequest {
				return nil, mcp.ResourceNotFoundError(uri)
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
				Message: string(failed.Code) + ": " + failed.Detail}
		}
		text, err := encode(out)
		if err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri,
			MIMEType: jsonType, Text: string(text)}}}, nil
	}
}
