package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// maxTickets bounds a customer's tickets: two for each stream that it may open.
const maxTickets = 20

func issueTicket(tx *state.Tx, p command.IssueTicketPayload) (state.Ticket, error) {
	if known := tx.Ticket(p.Hash); known != nil {
		return *known, nil
	}
	if tx.Customer(p.Customer) == nil {
		return state.Ticket{}, fault.New(fault.Unauthorized, "the customer does not exist")
	}
	for open := tx.Tickets(p.Customer); len(open) >= maxTickets; open = open[1:] {
		tx.RemoveTicket(open[0])
	}
	ticket := state.Ticket{Hash: p.Hash, Customer: p.Customer, Key: p.Key, Session: p.Session,
		Subject: p.Subject, Admin: p.Admin, Until: p.Until, Expires: tx.Now + state.TicketMillis}
	tx.PutTicket(&ticket)
	return ticket, nil
}

func takeTicket(tx *state.Tx, p command.TakeTicketPayload) (state.Ticket, error) {
	known := tx.Ticket(p.Hash)
	if known == nil || known.Expires <= tx.Now {
		return state.Ticket{}, fault.New(fault.Unauthorized,
			"the ticket is not known: it is good for a minute, and once")
	}
	tx.RemoveTicket(known)
	return *known, nil
}

// expireTickets removes expired tickets, a bounded number at a time.
func expireTickets(tx *state.Tx) {
	var old []*state.Ticket
	tx.TicketsByAge(func(t *state.Ticket) bool {
		if t.Expires > tx.Now || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, t)
		return true
	})
	for _, t := range old {
		tx.RemoveTicket(t)
	}
}
