package state

import (
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// WebhooksSince is the first cluster version in which customers have webhooks.
const WebhooksSince = 2

// Why a webhook gets no new deliveries; "": it does.
const (
	WebhookStopped = "STOPPED" // its customer stopped it
	WebhookFailing = "FAILING" // no delivery has succeeded for days
	WebhookGone    = "GONE"    // its receiver answered 410
)

// Webhook is an address that gets a customer's events as signed requests (decision 27).
type Webhook struct {
	ID        ids.ID        `cbor:"1,keyasint"`
	Customer  string        `cbor:"2,keyasint"`
	URL       string        `cbor:"3,keyasint"`
	Events    []model.Event `cbor:"4,keyasint"`
	Secret    []byte        `cbor:"5,keyasint"` // key of the signatures
	CreatedAt int64         `cbor:"6,keyasint"`
	Off       string        `cbor:"7,keyasint,omitempty"`
	// Former also signs, until FormerUntil.
	Former      []byte `cbor:"8,keyasint,omitempty"`
	FormerUntil int64  `cbor:"9,keyasint,omitempty"`
	// FailingSince is when the first attempt failed after the newest success.
	FailingSince int64 `cbor:"10,keyasint,omitempty"`
	// Next is when its next delivery is due; 0: none is pending.
	Next       int64  `cbor:"11,keyasint,omitempty"`
	Deliveries uint32 `cbor:"12,keyasint,omitempty"` // in its log
	// Dropped counts events without room, since too many deliveries were pending.
	Dropped uint64 `cbor:"13,keyasint,omitempty"`
	// Rotated is the index of the command that last replaced the secret, 0: none has.
	Rotated uint64 `cbor:"14,keyasint,omitempty"`
}

// Wants reports whether it gets new deliveries of an event.
func (w *Webhook) Wants(event model.Event) bool {
	return w.Off == "" && slices.Contains(w.Events, event)
}

var webhooksTable = define(WebhooksSince, "webhooks",
	index("id", true, func(w *Webhook) []any { return []any{w.ID} }),
	index("customer", true, func(w *Webhook) []any { return []any{w.Customer, w.ID} }),
	index("due", true, func(w *Webhook) []any {
		if w.Next == 0 {
			return nil
		}
		return []any{w.Next, w.ID}
	}),
).told((*Webhook).telling)

// telling shows only the address's origin, because the rest may be a secret of the receiver.
func (w *Webhook) telling() telling {
	events := make([]string, 0, len(w.Events))
	for _, event := range w.Events {
		events = append(events, string(event))
	}
	return telling{w.Customer, struct {
		Origin  string `json:"origin"`
		URL     string `json:"urlSha256"`
		Events  string `json:"events"`
		Off     string `json:"off,omitempty"`
		Rotated uint64 `json:"secretRotated,omitempty"`
		Former  int64  `json:"formerSecretUntil,omitempty"`
	}{originOf(w.URL), sumOf([]byte(w.URL)), strings.Join(events, " "), w.Off, w.Rotated,
		w.FormerUntil}}
}

// originOf returns an address without user, path and query. It does not parse the address, because
// all nodes must agree whatever they were built with.
func originOf(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// Webhook returns the webhook with an id, or nil.
func (v *View) Webhook(id ids.ID) *Webhook { return webhooksTable.first(v, "id", id) }

// Webhooks lists a customer's webhooks, the oldest first.
func (v *View) Webhooks(customer string) []*Webhook {
	return webhooksTable.all(v, "customer_prefix", customer)
}

// WebhooksDue visits the webhooks with a pending delivery, by its due time, until visit returns
// false.
func (v *View) WebhooksDue(visit func(*Webhook) bool) {
	webhooksTable.each(v, false, visit, "due_prefix")
}

// PutWebhook adds or replaces a webhook.
func (t *Tx) PutWebhook(w *Webhook) { webhooksTable.put(t, w) }

// RemoveWebhook removes a webhook.
func (t *Tx) RemoveWebhook(w *Webhook) { webhooksTable.remove(t, w) }

// States of a delivery.
const (
	DeliveryPending   = "PENDING"
	DeliveryDelivered = "DELIVERED"
	DeliveryFailed    = "FAILED"
)

// Delivery is a notice that is, or was, to be delivered to a webhook.
type Delivery struct {
	Webhook ids.ID `cbor:"1,keyasint"`
	Notice  Notice `cbor:"2,keyasint"` // its id is also the message's id
	State   string `cbor:"3,keyasint"`
	Due     int64  `cbor:"4,keyasint,omitempty"` // the next attempt, while pending
	Tries   uint32 `cbor:"5,keyasint,omitempty"` // all attempts
	// Before counts attempts before it was sent anew, which do not count towards giving up.
	Before  uint32 `cbor:"6,keyasint,omitempty"`
	TriedAt int64  `cbor:"7,keyasint,omitempty"` // time of the newest attempt
	Status  uint16 `cbor:"8,keyasint,omitempty"` // of its answer; 0: no answer
	Error   string `cbor:"9,keyasint,omitempty"` // of the newest attempt
	// Asked is the index of the command that last asked for it, 0: it is only sent as an event.
	Asked uint64 `cbor:"10,keyasint,omitempty"`
}

var deliveriesTable = define(WebhooksSince, "deliveries",
	index("id", true, func(d *Delivery) []any { return []any{d.Webhook, d.Notice.ID} }),
	index("log", true, func(d *Delivery) []any {
		return []any{d.Webhook, d.Notice.Made, d.Notice.ID}
	}),
	index("ended", true, func(d *Delivery) []any {
		if d.State == DeliveryPending {
			return nil
		}
		return []any{d.Webhook, d.Notice.Made, d.Notice.ID}
	}),
	index("due", true, func(d *Delivery) []any {
		if d.State != DeliveryPending {
			return nil
		}
		return []any{d.Webhook, d.Due, d.Notice.ID}
	}),
	index("age", true, func(d *Delivery) []any {
		return []any{d.Notice.At, d.Webhook, d.Notice.ID}
	}),
).told((*Delivery).telling).leaving()

// telling hides a delivery that nobody asked for.
func (d *Delivery) telling() telling {
	if d.Asked == 0 {
		return telling{}
	}
	return telling{d.Notice.Customer, struct {
		Event model.Event `json:"event"`
		Asked uint64      `json:"asked"`
	}{d.Notice.Event, d.Asked}}
}

// Delivery returns a webhook's delivery of a message, or nil.
func (v *View) Delivery(webhook, message ids.ID) *Delivery {
	return deliveriesTable.first(v, "id", webhook, message)
}

// Deliveries visits a webhook's deliveries, the newest first, until visit returns false.
func (v *View) Deliveries(webhook ids.ID, visit func(*Delivery) bool) {
	deliveriesTable.each(v, true, visit, "log_prefix", webhook)
}

// DeliveriesDue visits a webhook's pending deliveries by due time, until visit returns false.
func (v *View) DeliveriesDue(webhook ids.ID, visit func(*Delivery) bool) {
	deliveriesTable.each(v, false, visit, "due_prefix", webhook)
}

// DeliveriesByAge visits all deliveries, the oldest first, until visit returns false.
func (v *View) DeliveriesByAge(visit func(*Delivery) bool) {
	deliveriesTable.each(v, false, visit, "age_prefix")
}

// OldestEnded returns a webhook's oldest delivery that is not pending, nil when there is none.
func (v *View) OldestEnded(webhook ids.ID) *Delivery {
	return deliveriesTable.first(v, "ended_prefix", webhook)
}

// PutDelivery adds or replaces a delivery.
func (t *Tx) PutDelivery(d *Delivery) { deliveriesTable.put(t, d) }

// RemoveDelivery removes a delivery.
func (t *Tx) RemoveDelivery(d *Delivery) { deliveriesTable.remove(t, d) }
