package webhooks

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/webhooks"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// WebhookInput is what a customer may set of a webhook.
type WebhookInput struct {
	URL     string        `json:"url" required:"true" min:"1" max:"1024" doc:"A public http or https address. Redirects are not followed."`
	Events  []model.Event `json:"events" unique:"true" required:"true" min:"1" max:"32" doc:"Event identifiers as in the notification preferences; the preferences themselves do not apply here"`
	Enabled *bool         `json:"enabled" doc:"Whether it gets new events; default: true. Pending deliveries fail when it is switched off."`
}

// check refuses an address that may not be called.
func (b *WebhookInput) check(guard Guard) error {
	var list fault.List
	if err := guard.CheckURL(b.URL); err != nil {
		why := "cannot be called"
		if coded := (*fault.Error)(nil); errors.As(err, &coded) {
			why = coded.Detail
		}
		list = append(list, fault.Invalid(fault.InvalidURL, "url", "%s", why))
	}
	return list.OrNil()
}

func (b *WebhookInput) off() bool { return b.Enabled != nil && !*b.Enabled }

type createRequest struct {
	Body WebhookInput `body:"json"`
}

// create is POST /api/webhooks.
func (r Resource) create() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_create_webhook", Routes: operation.Routes("POST /api/webhooks"), Group: group,
		Summary: "Creates a webhook; a customer has at most 10",
		Description: "Events are sent as signed requests (Standard Webhooks) with the headers " +
			"webhook-id, webhook-timestamp and webhook-signature. An answer of 2xx within 15 " +
			"seconds confirms one. Otherwise it is tried 8 times over 24 hours, always under " +
			"the same webhook-id; an event may arrive twice. Only this answer holds the secret.",
		Access: auth.Write, Agents: operation.Adds,
		Rate: limits.General, Idempotency: operation.Optional, Status: 201,
		Errors: []fault.Code{fault.InvalidURL, fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *createRequest) (WebhookWithSecret,
		error) {
		if err := in.Body.check(r.Guard); err != nil {
			return WebhookWithSecret{}, err
		}
		made, err := client.Do(ctx, r.Client, client.PutWebhook{ID: r.IDs.New(),
			Customer: from.Customer, URL: in.Body.URL, Events: in.Body.Events, Off: in.Body.off(),
			Secret: webhooks.NewSecret()}, from.Call)
		if err != nil {
			return WebhookWithSecret{}, err
		}
		return r.showSecret(&made), nil
	})
}

type putRequest struct {
	ID   ids.ID       `path:"id"`
	Body WebhookInput `body:"json"`
}

// put is PUT /api/webhooks/{id}.
func (r Resource) put() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_put_webhook", Routes: operation.Routes("PUT /api/webhooks/{id}"), Group: group,
		Summary:     "Changes a webhook's address and events",
		Description: "It can also switch the webhook on again. The secret stays.",
		Access:      auth.Write, Agents: operation.Sets, Rate: limits.General,
		Errors: []fault.Code{fault.NotFound, fault.InvalidURL},
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Webhook, error) {
		if err := in.Body.check(r.Guard); err != nil {
			return Webhook{}, err
		}
		put, err := client.Do(ctx, r.Client, client.PutWebhook{ID: in.ID, Customer: from.Customer,
			URL: in.Body.URL, Events: in.Body.Events, Off: in.Body.off()}, nil)
		if err != nil {
			return Webhook{}, err
		}
		return r.show(&put), nil
	})
}

type rotateRequest struct {
	ID   ids.ID        `path:"id"`
	Body RotationInput `body:"json"`
}

// RotationInput sets how long both secrets sign.
type RotationInput struct {
	OverlapHours int64 `json:"overlapHours" default:"24" min:"0" max:"168" doc:"How long the old secret also signs, next to the new one"`
}

// rotate is POST /api/webhooks/{id}/rotate.
func (r Resource) rotate() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_rotate_webhook", Routes: operation.Routes("POST /api/webhooks/{id}/rotate"),
		Group: group, Summary: "Gives a webhook a new secret",
		Description: "Only this answer holds the new secret. During the overlap requests have " +
			"two signatures, and either one is enough. With 0 the old secret ends at once.",
		Access: auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Optional,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *rotateRequest) (WebhookWithSecret,
		error) {
		overlap := time.Duration(in.Body.OverlapHours) * time.Hour
		rotated, err := client.Do(ctx, r.Client, client.RotateWebhook{ID: in.ID,
			Customer: from.Customer, Secret: webhooks.NewSecret(),
			Overlap: overlap.Milliseconds()}, from.Call)
		if err != nil {
			return WebhookWithSecret{}, err
		}
		return r.showSecret(&rotated), nil
	})
}
