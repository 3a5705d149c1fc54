package apitest

import (
	"context"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
)

// audited is a control plane that fails the test if a proposal names no actor for the audit trail.
// So every test of a writing operation also checks that it names its caller.
type audited struct {
	*clienttest.Client
	t *testing.T
}

// Propose implements client.Client.
func (c audited) Propose(ctx context.Context, payload client.Payload, call *client.Call) (any,
	error) {
	switch payload.(type) {
	case client.TouchKeys, client.TouchSessions, client.TakeTicket,
		client.TakeMails, client.RecordMails, client.RenewClaims, client.EndExport,
		client.EndHarvest, client.SeedPlans,
		client.OpenCustomer: // which the server proposes on its own
	default:
		if actor := client.ActorOf(ctx); actor == nil || actor.Operation == "" {
			c.t.Errorf("%T is proposed, and nobody is behind it", payload)
		}
	}
	return c.Client.Propose(ctx, payload, call)
}
