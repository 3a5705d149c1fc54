package client

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// The replicated records of webhooks.
type (
	Webhook  = state.Webhook
	Delivery = state.Delivery
)

// The commands on webhooks.
type (
	PutWebhook    = command.PutWebhookPayload
	RotateWebhook = command.RotateWebhookPayload
	DeleteWebhook = command.DeleteWebhookPayload
	// RecordDeliveries records calls of webhooks; SendDelivery has one repeated.
	RecordDeliveries = command.RecordDeliveriesPayload
	TriedDelivery    = command.TriedDelivery
	SendDelivery     = command.SendDeliveryPayload
)
