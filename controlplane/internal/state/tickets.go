package state

import "shoal.dev/shoal/pkg/ids"

// TicketsSince is the first cluster version with tickets for streams.
const TicketsSince = 2

// TicketMillis is how long a ticket is valid.
const TicketMillis = 60_000

// Ticket opens one stream for the credential that asked for it. Only the hash of its text is
// stored.
type Ticket struct {
	Hash     Hash   `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`           // whose stream it is
	Key      ids.ID `cbor:"3,keyasint,omitzero"`  // the key that asked; zero: a sign-in
	Session  Hash   `cbor:"4,keyasint,omitzero"`  // the sign-in's session, if it has one
	Subject  string `cbor:"5,keyasint,omitempty"` // of a sign-in
	Admin    bool   `cbor:"6,keyasint,omitempty"` // of a sign-in
	Until    int64  `cbor:"7,keyasint,omitempty"` // when the token that asked expires
	Expires  int64  `cbor:"8,keyasint"`           // by state time
}

var ticketsTable = define(TicketsSince, "tickets",
	index("id", true, func(t *Ticket) []any { return []any{t.Hash} }),
	index("customer", true, func(t *Ticket) []any {
		return []any{t.Customer, t.Expires, t.Hash}
	}),
	index("due", true, func(t *Ticket) []any { return []any{t.Expires, t.Hash} }),
).untold()

// Ticket returns the ticket with a hash; nil: there is none, or it was used.
func (v *View) Ticket(hash Hash) *Ticket { return ticketsTable.first(v, "id", hash) }

// Tickets lists a customer's tickets, the oldest first.
func (v *View) Tickets(customer string) []*Ticket {
	return ticketsTable.all(v, "customer_prefix", customer)
}

// TicketsByAge visits all tickets, the oldest first, until visit returns false.
func (v *View) TicketsByAge(visit func(*Ticket) bool) {
	ticketsTable.each(v, false, visit, "due_prefix")
}

// PutTicket adds a ticket.
func (t *Tx) PutTicket(ticket *Ticket) { ticketsTable.put(t, ticket) }

// RemoveTicket removes a ticket.
func (t *Tx) RemoveTicket(ticket *Ticket) { ticketsTable.remove(t, ticket) }
