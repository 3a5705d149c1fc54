package events

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
)

// StreamTicket is a ticket that opens one stream.
type StreamTicket struct {
	Ticket    string   `json:"ticket" doc:"Value of the query parameter ticket of GET /api/events/stream"`
	ExpiresAt api.Time `json:"expiresAt"`
}

// issue is POST /api/events/ticket.
func (r Resource) issue() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_issue_ticket", Routes: operation.Routes("POST /api/events/ticket"), Group: group,
		Summary: "Makes a ticket that opens one stream of events",
		Description: "For browser pages, which cannot send a bearer credential with a stream. " +
			"A ticket is valid for a minute, once, on any server. Its stream ends when the " +
			"credential that asked for it does. A page signed in by cookie needs none. Beyond " +
			"20 tickets of a customer, the oldest one is dropped.",
		Access: auth.Read, Rate: limits.General, Status: 201,
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (StreamTicket, error) {
		ticket := auth.NewTicket()
		issued, err := client.Do(ctx, r.Client, from.Issue(ticket), nil)
		if err != nil {
			return StreamTicket{}, err
		}
		return StreamTicket{Ticket: ticket, ExpiresAt: api.Time(issued.Expires)}, nil
	})
}
