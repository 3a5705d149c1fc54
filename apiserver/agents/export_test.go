package agents

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// NewWith makes a gateway of operations that can do what no operation can: what the protocol's
// conformance suite wants of a server. It passes the same handlers, sessions and lists.
func NewWith(c Config, ops []*operation.Operation, change func(*mcp.ServerOptions),
	add func(*mcp.Server)) *Gateway {
	o := options()
	change(o)
	g := newGateway(c, ops, o)
	add(g.server)
	return g
}

// CallerIn is who has sent the message that a context is of.
func CallerIn(ctx context.Context) *operation.Caller {
	from, _ := ctx.Value(callerKey{}).(*operation.Caller)
	return from
}
