package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// What is replicated of webhooks.
type (
	Webhook  = state.Webhook
	Delivery = state.Delivery
)

// The commands on webhooks.
type (
	PutWebhook    = command.PutWebhookPayload
	RotateWebhook = command.RotateWebhookPayload
	DeleteWebhook = command.DeleteWebhookPayload
	// RecordDeliveries notes calls of webhooks; SendDelivery has one made anew.
	RecordDeliveries = command.RecordDeliveriesPayload
	TriedDelivery    = command.TriedDelivery
	SendDelivery     = command.SendDeliveryPayload
)
