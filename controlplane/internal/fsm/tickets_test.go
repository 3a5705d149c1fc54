package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func issuing(n byte) command.IssueTicketPayload {
	return command.IssueTicketPayload{Hash: state.Hash{n}, Customer: "ann", Key: ids.ID{7}}
}

// A ticket is used once, within its minute, however often either command is repeated.
func TestTickets(t *testing.T) {
	b := newBench(t)
	b.refused(issuing(1), fault.Unauthorized) // of an unknown customer
	b.must(command.OpenCustomerPayload{Customer: "ann", Entry: ids.ID{2}})
	issued := b.must(issuing(1)).(state.Ticket)
	if again := b.must(issuing(1)).(state.Ticket); again != issued ||
		issued.Expires != b.now+state.TicketMillis {
		t.Errorf("issued %+v, then %+v", issued, again)
	}
	if taken := b.must(command.TakeTicketPayload{Hash: state.Hash{1}}); taken != issued {
		t.Errorf("taken %+v", taken)
	}
	b.refused(command.TakeTicketPayload{Hash: state.Hash{1}}, fault.Unauthorized)
	b.refused(command.TakeTicketPayload{Hash: state.Hash{2}}, fault.Unauthorized)

	b.must(issuing(3))
	b.now += state.TicketMillis - 1
	b.must(issuing(4))
	b.now++
	b.refused(command.TakeTicketPayload{Hash: state.Hash{3}}, fault.Unauthorized)
	b.must(command.TickPayload{})
	if b.view().Ticket(state.Hash{3}) != nil || b.view().Ticket(state.Hash{4}) == nil {
		t.Error("others are there than those whose minute goes on")
	}
}

// A customer's oldest ticket is removed to make room.
func TestTicketsAreBounded(t *testing.T) {
	b := newBench(t)
	b.must(command.OpenCustomerPayload{Customer: "ann", Entry: ids.ID{2}})
	for n := range byte(maxTickets) {
		b.now++
		b.must(issuing(n))
	}
	if b.view().Ticket(state.Hash{0}) == nil {
		t.Error("a ticket went while there was room")
	}
	b.now++
	b.must(issuing(maxTickets))
	if b.view().Ticket(state.Hash{0}) != nil || len(b.view().Tickets("ann")) != maxTickets {
		t.Errorf("there are %d", len(b.view().Tickets("ann")))
	}
}
