package client

import (
	"context"

	"shoal.dev/shoal/controlplane/internal/state"
)

// Actor is who calls the API, for the audit trail. Propose takes it from its context, so no
// operation has to pass it on.
type Actor = state.Actor

type actorKey struct{}

// WithActor returns a context whose commands are proposed for an actor.
func WithActor(ctx context.Context, actor *Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns the actor for whom a context's commands are proposed; nil: the cluster itself.
func ActorOf(ctx context.Context) *Actor {
	actor, _ := ctx.Value(actorKey{}).(*Actor)
	return actor
}
