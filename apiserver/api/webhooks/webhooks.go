// Package webhooks owns the operations on webhooks, which tell customers of events by requests
// (decision 27). Package apiserver/internal/webhooks sends the requests.
package webhooks

import (
	"context"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/webhooks"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const group = "Webhooks"

// Guard is the address check, without DNS.
type Guard interface{ CheckURL(url string) error }

// Resource has the operations on webhooks and their dependencies.
type Resource struct {
	Client client.Proposer
	Clock  clock.Clock
	IDs    ids.Source
	Guard  Guard
}

// Operations lists all operations.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.list(),
		r.create(),
		r.get(),
		r.put(),
		r.delete(),
		r.rotate(),
		r.test(),
		r.deliveries(),
		r.redeliver(),
	}
}

// Webhook is an address that is told of events. Only two answers contain its secret.
type Webhook struct {
	ID        ids.ID        `json:"id"`
	URL       string        `json:"url"`
	Events    []model.Event `json:"events"`
	Enabled   bool          `json:"enabled" doc:"The webhook gets new events"`
	Disabled  *string       `json:"disabledBecause" enum:"STOPPED,FAILING,GONE" doc:"STOPPED: by the customer; FAILING: no call got through for 5 days; GONE: the receiver answered 410"`
	CreatedAt api.Time      `json:"createdAt"`
	// FailingSince is null if the newest call succeeded.
	FailingSince        api.Time `json:"failingSince" doc:"Since when no call has got through; null: the newest one did"`
	FormerSecretUntil   api.Time `json:"formerSecretUntil" doc:"Until when the secret from before the rotation also signs"`
	DroppedEvents       uint64   `json:"droppedEvents" doc:"Events dropped because 500 deliveries were pending"`
	LoggedDeliveryCount uint32   `json:"loggedDeliveryCount"`
}

// NewWebhook converts a webhook to the API's form, as of now.
func NewWebhook(w *client.Webhook, now time.Time) Webhook {
	shown := Webhook{ID: w.ID, URL: w.URL, Events: slices.Clone(w.Events), Enabled: w.Off == "",
		CreatedAt: api.Time(w.CreatedAt), FailingSince: api.Time(w.FailingSince),
		DroppedEvents: w.Dropped, LoggedDeliveryCount: w.Deliveries}
	if w.Off != "" {
		shown.Disabled = &w.Off
	}
	if now.UnixMilli() < w.FormerUntil {
		shown.FormerSecretUntil = api.Time(w.FormerUntil)
	}
	return shown
}

func (r Resource) show(w *client.Webhook) Webhook { return NewWebhook(w, r.Clock.Now()) }

// WebhookWithSecret is a webhook with a new secret.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret" doc:"In the form that Standard Webhooks libraries take. It is shown only once."`
}

func (r Resource) showSecret(w *client.Webhook) WebhookWithSecret {
	return WebhookWithSecret{Webhook: r.show(w), Secret: webhooks.ShowSecret(w.Secret)}
}

// own returns a webhook of the caller's customer.
func own(from *operation.Caller, id ids.ID) (*client.Webhook, error) {
	if known := from.View.Webhook(id); known != nil && known.Customer == from.Customer {
		return known, nil
	}
	return nil, fault.Invalid(fault.NotFound, "id", "no webhook has this id")
}

// WebhookList lists all webhooks of a customer.
type WebhookList struct {
	Webhooks []Webhook `json:"webhooks" doc:"Oldest first, at most 10"`
}

// list is GET /api/webhooks.
func (r Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_webhooks", Routes: operation.Routes("GET /api/webhooks"), Group: group,
		Summary: "Lists the customer's webhooks",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (WebhookList, error) {
		list := WebhookList{Webhooks: []Webhook{}}
		for _, known := range from.View.Webhooks(from.Customer) {
			list.Webhooks = append(list.Webhooks, r.show(known))
		}
		return list, nil
	})
}

type oneRequest struct {
	ID ids.ID `path:"id"`
}

// get is GET /api/webhooks/{id}.
func (r Resource) get() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_webhook", Routes: operation.Routes("GET /api/webhooks/{id}"), Group: group,
		Summary: "Returns a webhook",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.NotFound},
	}, func(_ context.Context, from *operation.Caller, in *oneRequest) (Webhook, error) {
		known, err := own(from, in.ID)
		if err != nil {
			return Webhook{}, err
		}
		return r.show(known), nil
	})
}

// delete is DELETE /api/webhooks/{id}.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_delete_webhook", Routes: operation.Routes("DELETE /api/webhooks/{id}"),
		Group:       group,
		Summary:     "Deletes a webhook and its log",
		Description: "Pending deliveries are no longer sent, except for calls under way.",
		Access:      auth.Write, Agents: operation.Destroys, Rate: limits.General,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *oneRequest) (operation.None, error) {
		_, err := client.Do(ctx, r.Client, client.DeleteWebhook{ID: in.ID,
			Customer: from.Customer}, nil)
		return operation.None{}, err
	})
}
