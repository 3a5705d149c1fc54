package auth

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// A ticket has the form svc_ticket_<secret>. It is part of a stream's address, where a credential
// must not be since addresses are logged. So it is valid only once.
const (
	ticketStart  = "svc_ticket_"
	ticketLength = len(ticketStart) + 52
)

var errTicket = fault.New(fault.Unauthorized, "the ticket is not known: it is good for a minute, "+
	"and once")

// NewTicket makes a ticket of 260 random bits.
func NewTicket() string { return ticketStart + rand.Text() + rand.Text() }

// Issue is the command that lets a ticket open a stream on behalf of a principal.
func (p *Principal) Issue(ticket string) client.IssueTicket {
	issue := client.IssueTicket{Hash: HashSession(ticket), Customer: p.Customer, Subject: p.Subject,
		Admin: p.Admin, Until: p.Until}
	if p.Key != nil {
		issue.Key = p.Key.ID
	}
	if p.Session != nil {
		issue.Session = p.Session.Hash
	}
	return issue
}

// KnowsTicket says, from what this node knows, whether a ticket is valid.
func (a *Authenticator) KnowsTicket(ticket string) bool {
	return a.Client.View().Ticket(HashSession(ticket)) != nil
}

// Redeem finds out who asked for a ticket, and takes the ticket. It refuses a principal who would
// be refused by now. Faults: unauthorized, account_disabled, customer_blocked, unavailable.
func (a *Authenticator) Redeem(ctx context.Context, ticket string) (Principal, *client.View,
	error) {
	if len(ticket) != ticketLength || !strings.HasPrefix(ticket, ticketStart) ||
		a.unknown.remembers(ticket, a.Clock.Now()) && !a.KnowsTicket(ticket) {
		return Principal{}, nil, errTicket
	}
	view, err := a.Client.Fresh(ctx)
	if err != nil {
		return Principal{}, nil, fmt.Errorf("read the state: %w", err)
	}
	if view.Ticket(HashSession(ticket)) == nil {
		a.unknown.remember(ticket, a.Clock.Now())
		return Principal{}, nil, errTicket
	}
	taken, err := client.Do(ctx, a.Client, client.TakeTicket{Hash: HashSession(ticket)}, nil)
	if err != nil {
		return Principal{}, nil, err
	}
	if view, err = a.Client.Fresh(ctx); err != nil {
		return Principal{}, nil, fmt.Errorf("read the state: %w", err)
	}
	p := Principal{Customer: taken.Customer, Subject: taken.Subject, Admin: taken.Admin,
		Until: taken.Until}
	if !taken.Key.IsZero() {
		if grant := view.Grant(taken.Key); grant != nil {
			p.granted(grant)
			p.Until = taken.Until
		} else if p.Key = view.Key(taken.Key); p.Key == nil {
			return Principal{}, nil, fault.New(fault.Unauthorized, "the key was revoked")
		}
	}
	if taken.Session != (client.Hash{}) {
		if p.Session = view.Session(taken.Session); p.Session == nil {
			return Principal{}, nil, errSession
		}
	}
	if a.OpenID != nil && p.Key == nil && p.Session == nil {
		p.Account = AccountOf(a.OpenID.Name(), p.Subject)
	}
	return p, view, a.holds(view, &p)
}
