package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of webhooks.
const (
	maxWebhooks        = 10  // per customer
	maxDeliveries      = 500 // in the log of one webhook
	deliveryKeptMillis = 30 * 24 * 60 * 60 * 1000
	// webhookFailingMillis is how long nothing may succeed before a webhook is switched off.
	webhookFailingMillis = 5 * 24 * 60 * 60 * 1000
	// goneStatus means that a receiver wants nothing any more (RFC 9110, 15.5.11).
	goneStatus = 410
)

// deliveryPauses are the times between a delivery's attempts, in milliseconds: 8 attempts over 24
// hours (decision 27).
func deliveryPauses() []int64 {
	const second, minute, hour = 1000, 60 * 1000, 60 * 60 * 1000
	return []int64{5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 7 * hour,
		9*hour + 20*minute}
}

// callWebhooks queues a notice for each webhook of its customer that wants it.
func callWebhooks(tx *state.Tx, n state.Notice) {
	for _, known := range tx.Webhooks(n.Customer) {
		if known.Wants(n.Event) {
			hook := *known
			deliver(tx, &hook, n)
			tx.PutWebhook(&hook)
		}
	}
}

// deliver adds a delivery to a webhook's log, and reports whether there was room. To make room it
// removes the oldest ended delivery. If all are pending, it only counts the new one.
func deliver(tx *state.Tx, hook *state.Webhook, n state.Notice) bool {
	if tx.Delivery(hook.ID, n.ID) != nil {
		return true
	}
	if hook.Deliveries >= maxDeliveries {
		oldest := tx.OldestEnded(hook.ID)
		if oldest == nil {
			hook.Dropped++
			return false
		}
		tx.RemoveDelivery(oldest)
		hook.Deliveries--
	}
	hook.Deliveries++
	tx.PutDelivery(&state.Delivery{Webhook: hook.ID, Notice: n, State: state.DeliveryPending,
		Due: tx.Now})
	schedule(tx, hook)
	return true
}

// schedule updates when a webhook's next delivery is due.
func schedule(tx *state.Tx, hook *state.Webhook) {
	hook.Next = 0
	tx.DeliveriesDue(hook.ID, func(d *state.Delivery) bool {
		hook.Next = d.Due
		return false
	})
}

// ownWebhook returns a copy of a customer's webhook.
func ownWebhook(tx *state.Tx, customer string, id ids.ID) (*state.Webhook, error) {
	known := tx.Webhook(id)
	if known == nil || known.Customer != customer {
		return nil, fault.Invalid(fault.NotFound, "id", "no webhook has this id")
	}
	hook := *known
	return &hook, nil
}

func putWebhook(tx *state.Tx, p command.PutWebhookPayload) (state.Webhook, error) {
	if len(p.Secret) > 0 && tx.Webhook(p.ID) == nil {
		if tx.Customer(p.Customer) == nil {
			return state.Webhook{}, fault.New(fault.Unauthorized, "the customer does not exist")
		}
		if len(tx.Webhooks(p.Customer)) >= maxWebhooks {
			return state.Webhook{}, fault.New(fault.LimitReached,
				"a customer has at most %d webhooks", maxWebhooks)
		}
		tx.PutWebhook(&state.Webhook{ID: p.ID, Customer: p.Customer, Secret: p.Secret,
			CreatedAt: tx.Now})
	}
	hook, err := ownWebhook(tx, p.Customer, p.ID)
	if err != nil {
		return state.Webhook{}, err
	}
	hook.URL, hook.Events = p.URL, p.Events
	if p.Off {
		switchOff(tx, hook, state.WebhookStopped)
	} else if hook.Off != "" {
		hook.Off, hook.FailingSince = "", 0
	}
	tx.PutWebhook(hook)
	return *hook, nil
}

// switchOff switches a webhook off and fails its pending deliveries.
func switchOff(tx *state.Tx, hook *state.Webhook, why string) {
	hook.Off = why
	var pending []*state.Delivery
	tx.DeliveriesDue(hook.ID, func(d *state.Delivery) bool {
		pending = append(pending, d)
		return true
	})
	for _, known := range pending {
		d := *known
		d.State, d.Due, d.Error = state.DeliveryFailed, 0, "The webhook was switched off."
		tx.PutDelivery(&d)
	}
	schedule(tx, hook)
}

func rotateWebhook(tx *state.Tx, p command.RotateWebhookPayload) (state.Webhook, error) {
	hook, err := ownWebhook(tx, p.Customer, p.ID)
	if err != nil || slices.Equal(hook.Secret, p.Secret) {
		return valueOf(hook), err
	}
	hook.Former, hook.FormerUntil = nil, 0
	if p.Overlap > 0 {
		hook.Former, hook.FormerUntil = hook.Secret, tx.Now+p.Overlap
	}
	hook.Secret, hook.Rotated = p.Secret, tx.Index
	tx.PutWebhook(hook)
	return *hook, nil
}

func valueOf(hook *state.Webhook) state.Webhook {
	if hook == nil {
		return state.Webhook{}
	}
	return *hook
}

func deleteWebhook(tx *state.Tx, p command.DeleteWebhookPayload) (command.None, error) {
	hook, err := ownWebhook(tx, p.Customer, p.ID)
	if err != nil {
		return command.None{}, err
	}
	var all []*state.Delivery
	tx.Deliveries(hook.ID, func(d *state.Delivery) bool {
		all = append(all, d)
		return true
	})
	for _, d := range all {
		tx.RemoveDelivery(d)
	}
	tx.RemoveWebhook(hook)
	noteRevoked(tx, hook.ID)
	return command.None{}, nil
}

func sendDelivery(tx *state.Tx, p command.SendDeliveryPayload) (state.Delivery, error) {
	hook, err := ownWebhook(tx, p.Customer, p.Webhook)
	if err != nil {
		return state.Delivery{}, err
	}
	if p.Test && !deliver(tx, hook, state.Notice{ID: p.Message, Customer: p.Customer,
		Event: model.WebhookTest, At: tx.Now, Made: tx.Index, Subject: hook.ID, Name: hook.URL}) {
		return state.Delivery{}, fault.New(fault.LimitReached,
			"%d deliveries of the webhook are pending, and it can have no more", maxDeliveries)
	}
	known := tx.Delivery(hook.ID, p.Message)
	if known == nil {
		return state.Delivery{}, fault.Invalid(fault.NotFound, "deliveryId",
			"no delivery of the webhook has this id")
	}
	d := *known
	if d.State != state.DeliveryPending {
		d.State, d.Before = state.DeliveryPending, d.Tries
	}
	d.Due, d.Asked = tx.Now, tx.Index
	tx.PutDelivery(&d)
	schedule(tx, hook)
	tx.PutWebhook(hook)
	return d, nil
}

func recordDeliveries(tx *state.Tx, p command.RecordDeliveriesPayload) (command.None, error) {
	for _, tried := range p.Tried {
		known := tx.Delivery(tried.Webhook, tried.Message)
		if known == nil || known.State != state.DeliveryPending || known.Tries != tried.Tries {
			continue
		}
		d, hook := *known, *tx.Webhook(tried.Webhook)
		d.Tries, d.TriedAt, d.Status, d.Error = d.Tries+1, tx.Now, tried.Status, tried.Error
		why := ""
		if tried.Error == "" {
			d.State, d.Due, hook.FailingSince = state.DeliveryDelivered, 0, 0
		} else {
			why = fail(tx, &d, &hook)
		}
		tx.PutDelivery(&d)
		schedule(tx, &hook)
		if why != "" {
			switchOff(tx, &hook, why)
		}
		tx.PutWebhook(&hook)
		if why != "" {
			notify(tx, state.Notice{Customer: hook.Customer, Event: model.WebhookDisabled,
				ID:      state.NoticeID(model.WebhookDisabled, hook.Customer, hook.ID, tx.Index),
				Subject: hook.ID, Name: hook.URL, Message: d.Error})
		}
	}
	return command.None{}, nil
}

// fail delays a delivery, or fails it after its last attempt. It returns why to switch the webhook
// off, "" for not at all.
func fail(tx *state.Tx, d *state.Delivery, hook *state.Webhook) (why string) {
	if hook.FailingSince == 0 {
		hook.FailingSince = tx.Now
	}
	pauses := deliveryPauses()
	if tries := int(d.Tries - d.Before); tries <= len(pauses) {
		d.Due = tx.Now + pauses[tries-1]
	} else {
		d.State, d.Due = state.DeliveryFailed, 0
	}
	switch {
	case hook.Off != "":
		return ""
	case d.Status == goneStatus:
		return state.WebhookGone
	case d.State == state.DeliveryFailed && tx.Now-hook.FailingSince >= webhookFailingMillis:
		return state.WebhookFailing
	}
	return ""
}

// expireDeliveries removes old deliveries, a bounded number at a time.
func expireDeliveries(tx *state.Tx) {
	var old []*state.Delivery
	tx.DeliveriesByAge(func(d *state.Delivery) bool {
		if d.Notice.At > tx.Now-deliveryKeptMillis || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, d)
		return true
	})
	for _, d := range old {
		hook := *tx.Webhook(d.Webhook)
		tx.RemoveDelivery(d)
		hook.Deliveries--
		schedule(tx, &hook)
		tx.PutWebhook(&hook)
	}
}
