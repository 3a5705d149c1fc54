package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// PutWebhookPayload makes a webhook, or changes its address and its events. Switching it off fails
// its pending deliveries. Faults: limit_reached (10 a customer), not_found.
type PutWebhookPayload struct {
	ID       ids.ID        `cbor:"1,keyasint"`
	Customer string        `cbor:"2,keyasint"`
	URL      string        `cbor:"3,keyasint"`
	Events   []model.Event `cbor:"4,keyasint"`
	Off      bool          `cbor:"5,keyasint,omitempty"`
	// Secret is random, for a new webhook; none: the webhook exists.
	Secret []byte `cbor:"6,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutWebhookPayload) Declaration() Declaration {
	return Declaration{Number: 161, By: APIServer, Kept: true, Since: state.WebhooksSince}
}

func (PutWebhookPayload) yields(state.Webhook) {}

// RotateWebhookPayload gives a webhook a new secret. The former one also signs for a while, and the
// one before it no longer does. Faults: not_found.
type RotateWebhookPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Secret   []byte `cbor:"3,keyasint"`
	Overlap  int64  `cbor:"4,keyasint,omitempty"` // milliseconds after the command's time
}

// Declaration implements Payload.
func (RotateWebhookPayload) Declaration() Declaration {
	return Declaration{Number: 162, By: APIServer, Kept: true, Since: state.WebhooksSince}
}

func (RotateWebhookPayload) yields(state.Webhook) {}

// DeleteWebhookPayload removes a webhook and its log. Faults: not_found.
type DeleteWebhookPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (DeleteWebhookPayload) Declaration() Declaration {
	return Declaration{Number: 163, By: APIServer, Kept: true, Since: state.WebhooksSince}
}

func (DeleteWebhookPayload) yields(None) {}

// RecordDeliveriesPayload records the outcome of deliveries. It skips those that have ended, or
// that another sender has tried.
type RecordDeliveriesPayload struct {
	Tried []TriedDelivery `cbor:"1,keyasint"`
}

// TriedDelivery is one attempt.
type TriedDelivery struct {
	Webhook ids.ID `cbor:"1,keyasint"`
	Message ids.ID `cbor:"2,keyasint"`
	Tries   uint32 `cbor:"3,keyasint,omitempty"` // before this attempt
	Status  uint16 `cbor:"4,keyasint,omitempty"` // of the answer; 0: none
	Error   string `cbor:"5,keyasint,omitempty"` // at most 200 bytes; "": delivered
}

// Declaration implements Payload.
func (RecordDeliveriesPayload) Declaration() Declaration {
	return Declaration{Number: 164, By: APIServer, Since: state.WebhooksSince}
}

func (RecordDeliveriesPayload) yields(None) {}

// SendDeliveryPayload sends a webhook's message again under its old id, or sends a new test.
// Faults: not_found, limit_reached for a test when too many deliveries are pending.
type SendDeliveryPayload struct {
	Webhook  ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Message  ids.ID `cbor:"3,keyasint"`
	Test     bool   `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (SendDeliveryPayload) Declaration() Declaration {
	return Declaration{Number: 165, By: APIServer, Kept: true, Since: state.WebhooksSince}
}

func (SendDeliveryPayload) yields(state.Delivery) {}
