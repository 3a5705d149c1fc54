package webhooks

import (
	"context"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// batch is the calls of one step. Only one goroutine may use it.
type batch struct {
	*caller
	open      map[name]*client.Webhook // calls under way
	webhooks  map[ids.ID]int           // calls under way per webhook
	customers map[string]int           // calls under way per customer
	failingOf map[string]int           // of those, calls to failing webhooks
	failing   int                      // calls under way to failing webhooks
	late      bool                     // failing webhooks get no new calls
	answers   chan answer              // has room for all calls
	running   sync.WaitGroup
}

// answer is the result of a call. It is not known if the call was cut off.
type answer struct {
	name  name
	tried client.TriedDelivery
	known bool
}

func newBatch(c *caller) *batch {
	return &batch{caller: c, open: map[name]*client.Webhook{}, webhooks: map[ids.ID]int{},
		customers: map[string]int{}, failingOf: map[string]int{},
		answers: make(chan answer, atOnce)}
}

// wait waits for the calls under way. Their context has ended.
func (b *batch) wait() { b.running.Wait() }

// fill begins due calls, within the bounds. Slow receivers hold up no others: each webhook and
// customer has a share. Failing webhooks get half of a customer's share, and half of all.
func (b *batch) fill(ctx context.Context) {
	view, now := b.Client.View(), b.Clock.Now().UnixMilli()
	view.WebhooksDue(func(w *client.Webhook) bool {
		if w.Next > now || len(b.open) == atOnce {
			return false
		}
		if view.Customer(w.Customer).Blocked() {
			return true
		}
		view.DeliveriesDue(w.ID, func(d *client.Delivery) bool {
			if d.Due > now || !b.room(w) {
				return false
			}
			if b.open[name{w.ID, d.Notice.ID}] == nil {
				b.startCall(ctx, w, d)
			}
			return true
		})
		return true
	})
}

// room says whether one more call to a webhook may begin.
func (b *batch) room(w *client.Webhook) bool {
	most := ofWebhook
	if w.FailingSince != 0 {
		if most = 1; b.failing == failing || b.failingOf[w.Customer] == failingOfOne || b.late {
			return false
		}
	}
	return b.webhooks[w.ID] < most && b.customers[w.Customer] < ofCustomer &&
		len(b.open) < atOnce
}

func (b *batch) startCall(ctx context.Context, w *client.Webhook, d *client.Delivery) {
	of := name{w.ID, d.Notice.ID}
	b.open[of] = w
	b.count(w, 1)
	b.running.Go(func() {
		tried, known := b.call(ctx, w, d)
		b.answers <- answer{of, tried, known}
	})
}

func (b *batch) count(w *client.Webhook, n int) {
	b.webhooks[w.ID] += n
	b.customers[w.Customer] += n
	if w.FailingSince != 0 {
		b.failing += n
		b.failingOf[w.Customer] += n
	}
}

// ended waits for an answer, or until due. Then it takes all answers that are there.
func (b *batch) ended(due <-chan time.Time) (tried []client.TriedDelivery) {
	select {
	case a := <-b.answers:
		tried = b.end(a, tried)
	case <-due:
	}
	for {
		select {
		case a := <-b.answers:
			tried = b.end(a, tried)
		default:
			return tried
		}
	}
}

func (b *batch) end(a answer, tried []client.TriedDelivery) []client.TriedDelivery {
	b.count(b.open[a.name], -1)
	delete(b.open, a.name)
	if a.known {
		tried = append(tried, a.tried)
	}
	return tried
}
