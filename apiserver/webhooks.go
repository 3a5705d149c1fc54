package apiserver

import (
	"shoal.dev/shoal/apiserver/internal/webhooks"
	"shoal.dev/shoal/pkg/work"
)

// WebhookConfig is what the calling of webhooks works with.
type WebhookConfig = webhooks.Config

// Webhooks is the calling of customers' webhooks, a kind of background work.
func Webhooks(config WebhookConfig) work.Kind { return webhooks.Kind(config) }
