package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// PutWebhookPayload makes a webhook, or changes where it goes and of what it tells. One that is
// switched off fails what is pending. Faults: limit_reached (10 a customer), not_found.
type PutWebhookPayload struct {
	ID       ids.ID        `cbor:"1,keyasint"`
	Customer string        `cbor:"2,keyasint"`
	URL      string        `cbor:"3,keyasint"`
	Events   []model.Event `cbor:"4,keyasint"`
	Off      bool          `cbor:"5,keyasint,omitempty"`
	// Secret is that of a new one, random; none: it is there already.
	Secret []byte `cbor:"6,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutWebhookPayload) Declaration() Declaration {
	return Declaration{Number: 161, By: APIServer, Kept: true, Since: state.WebhooksSince}
}

func (PutWebhookPayload) yields(state.Webhook) {}

// RotateWebhookPayload gives a webhook another secret. The former one signs beside it for a while,
// and what was former before does not any more. Faults: not_found.
type RotateWebhookPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Secret   []byte `cbor:"3,keyasint"`
	Overlap  int64  `cbor:"4,keyasint,omitempty"` // milliseconds from the command's time on
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

// RecordDeliveriesPayload notes what became of deliveries. What ended meanwhile, or was tried by
// another sender, is passed over.
type RecordDeliveriesPayload struct {
	Tried []TriedDelivery `cbor:"1,keyasint"`
}

// TriedDelivery is one try.
type TriedDelivery struct {
	Webhook ids.ID `cbor:"1,keyasint"`
	Message ids.ID `cbor:"2,keyasint"`
	Tries   uint32 `cbor:"3,keyasint,omitempty"` // before this one
	Status  uint16 `cbor:"4,keyasint,omitempty"` // of the answer; 0: none came
	Error   string `cbor:"5,keyasint,omitempty"` // at most 200 bytes; "": it went through
}

// Declaration implements Payload.
func (RecordDeliveriesPayload) Declaration() Declaration {
	return Declaration{Number: 164, By: APIServer, Since: state.WebhooksSince}
}

func (RecordDeliveriesPayload) yields(None) {}

// SendDeliveryPayload has a webhook's message sent anew, under the id that it had, or a test that
// is new. Faults: not_found, limit_reached for a test when too many deliveries are pending.
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
