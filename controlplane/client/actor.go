package client

import (
	"context"

	"shoal.dev/shoal/controlplane/internal/state"
)

// Actor is who calls the API, as the audit trail tells it. What a command says of it is what the
// context of Propose has: no operation passes it on, so none can forget to.
type Actor = state.Actor

type actorKey struct{}

// WithActor is a context that proposes everything for somebody.
func WithActor(ctx context.Context, actor *Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf is for whom commands of a context are proposed; nil: the cluster by itself.
func ActorOf(ctx context.Context) *Actor {
	actor, _ := ctx.Value(actorKey{}).(*Actor)
	return actor
}
