package agents

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
)

// NewWith makes a gateway that can do more than operations can, as the conformance suite requires.
// It uses the same handlers, sessions and lists.
func NewWith(c Config, ops []*operation.Operation, change func(*mcp.ServerOptions),
	add func(*mcp.Server)) *Gateway {
	o := options()
	change(o)
	g := newGateway(c, ops, o)
	add(g.server)
	return g
}

// CallerIn returns the sender of the message that ctx belongs to.
func CallerIn(ctx context.Context) *operation.Caller {
	from, _ := ctx.Value(callerKey{}).(*operation.Caller)
	return from
}
