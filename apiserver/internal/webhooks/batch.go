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
	open      map[name]call  // calls under way
	webhooks  map[ids.ID]int // calls under way per webhook
	customers map[string]int // calls under way per customer
	slowOf    map[string]int // of those, calls to slow webhooks
	slow      int            // calls under way to slow webhooks
	late      bool           // slow webhooks get no new calls
	answers   chan answer    // has room for all calls
	running   sync.WaitGroup
}

// call is a call under way.
type call struct {
	webhook *client.Webhook
	slow    bool // the webhook was slow when it began
}

// answer is the result of a call. It is not known if the call was cut off.
type answer struct {
	name  name
	tried client.TriedDelivery
	known bool
	took  time.Duration
}

func newBatch(c *caller) *batch {
	return &batch{caller: c, open: map[name]call{}, webhooks: map[ids.ID]int{},
		customers: map[string]int{}, slowOf: map[string]int{},
		answers: make(chan answer, atOnce)}
}

// wait waits for the calls under way. Their context has ended.
func (b *batch) wait() { b.running.Wait() }

// fill begins due calls, within the bounds. Slow receivers hold up no others: each webhook and
// customer has a share. Slow webhooks get half of a customer's share, and half of all. Of the
// customers, the one with the fewest calls under way goes first.
func (b *batch) fill(ctx context.Context) {
	for most := 1; b.fillUpTo(ctx, most); most++ {
	}
}

// fillUpTo begins calls until each customer has that many under way. It reports whether a customer
// could have more.
func (b *batch) fillUpTo(ctx context.Context, most int) (more bool) {
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
			if _, underWay := b.open[name{w.ID, d.Notice.ID}]; underWay {
				return true
			}
			if b.customers[w.Customer] >= most {
				more = true
				return false
			}
			b.startCall(ctx, w, d)
			return true
		})
		return true
	})
	return more
}

// room says whether one more call to a webhook may begin.
func (b *batch) room(w *client.Webhook) bool {
	most := ofWebhook
	if w.FailingSince != 0 {
		most = 1
	}
	if b.isSlow(w) && (b.slow == slowAtOnce || b.slowOf[w.Customer] == slowOfOne || b.late) {
		return false
	}
	return b.webhooks[w.ID] < most && b.customers[w.Customer] < ofCustomer &&
		len(b.open) < atOnce
}

func (b *batch) startCall(ctx context.Context, w *client.Webhook, d *client.Delivery) {
	of := name{w.ID, d.Notice.ID}
	b.open[of] = call{w, b.isSlow(w)}
	b.count(b.open[of], 1)
	began := b.Clock.Now()
	b.running.Go(func() {
		tried, known := b.call(ctx, w, d)
		b.answers <- answer{of, tried, known, b.Clock.Now().Sub(began)}
	})
}

func (b *batch) count(c call, n int) {
	b.webhooks[c.webhook.ID] += n
	b.customers[c.webhook.Customer] += n
	if c.slow {
		b.slow += n
		b.slowOf[c.webhook.Customer] += n
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
		b.took(a.name.webhook, a.took)
		tried = append(tried, a.tried)
	}
	return tried
}
