package apiserver

import (
	"shoal.dev/shoal/apiserver/internal/webhooks"
	"shoal.dev/shoal/pkg/work"
)

// WebhookConfig is the configuration of Webhooks.
type WebhookConfig = webhooks.Config

// Webhooks is a kind of background work: it calls customers' webhooks.
func Webhooks(config WebhookConfig) work.Kind { return webhooks.Kind(config) }
