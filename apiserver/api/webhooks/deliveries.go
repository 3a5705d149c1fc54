package webhooks

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// WebhookDelivery is the delivery of an event to a webhook, pending or ended.
type WebhookDelivery struct {
	ID        ids.ID      `json:"id" doc:"The webhook-id of the delivery's requests"`
	Event     model.Event `json:"event" doc:"One of the webhook's events, or WEBHOOK_TEST"`
	State     string      `json:"state" enum:"PENDING,DELIVERED,FAILED"`
	CreatedAt api.Time    `json:"createdAt"`
	Tries     uint32      `json:"tries"`
	TriedAt   api.Time    `json:"triedAt" doc:"When it was last tried"`
	NextTry   api.Time    `json:"nextTry" doc:"When it is tried next; only while pending"`
	Status    *uint16     `json:"status" doc:"HTTP status of the newest answer; null: there was none"`
	Error     *string     `json:"error" doc:"Why the newest try failed"`
}

func newDelivery(d *client.Delivery) WebhookDelivery {
	shown := WebhookDelivery{ID: d.Notice.ID, Event: d.Notice.Event, State: d.State,
		CreatedAt: api.Time(d.Notice.At), Tries: d.Tries, TriedAt: api.Time(d.TriedAt),
		NextTry: api.Time(d.Due)}
	if d.Status != 0 {
		shown.Status = &d.Status
	}
	if d.Error != "" {
		shown.Error = &d.Error
	}
	return shown
}

// test is POST /api/webhooks/{id}/test.
func (r Resource) test() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_test_webhook", Routes: operation.Routes("POST /api/webhooks/{id}/test"),
		Group: group, Summary: "Sends a WEBHOOK_TEST to a webhook, even if it is off",
		Description: "The result is in the webhook's log.",
		Access:      auth.Write, Agents: operation.Adds, Reaches: true, Rate: limits.General,
		Status: 202,
		Errors: []fault.Code{fault.NotFound, fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *oneRequest) (WebhookDelivery, error) {
		return r.send(ctx, client.SendDelivery{Webhook: in.ID, Customer: from.Customer,
			Message: r.IDs.New(), Test: true})
	})
}

func (r Resource) send(ctx context.Context, send client.SendDelivery) (WebhookDelivery, error) {
	sent, err := client.Do(ctx, r.Client, send, nil)
	if err != nil {
		return WebhookDelivery{}, err
	}
	return newDelivery(&sent), nil
}

type deliveriesRequest struct {
	ID   ids.ID `path:"id"`
	Page int    `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size int    `query:"size" default:"20" min:"1" clamp:"200" code:"invalid_page"`
}

// deliveries is GET /api/webhooks/{id}/deliveries.
func (Resource) deliveries() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_webhook_deliveries",
		Routes: operation.Routes("GET /api/webhooks/{id}/deliveries"), Group: group,
		Summary: "Lists a webhook's sent and pending deliveries, newest first",
		Description: "Each delivery is kept for 30 days. Beyond 500, the oldest finished one " +
			"is removed; while 500 are pending, new events are only counted as droppedEvents.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.NotFound, fault.InvalidPage},
	}, func(_ context.Context, from *operation.Caller,
		in *deliveriesRequest) (api.Page[WebhookDelivery], error) {
		var none api.Page[WebhookDelivery]
		known, err := own(from, in.ID)
		if err == nil {
			err = api.Reach(in.Page, in.Size, "a webhook's log has 500 deliveries")
		}
		if err != nil {
			return none, err
		}
		var content []WebhookDelivery
		passed := 0
		from.View.Deliveries(known.ID, func(d *client.Delivery) bool {
			if passed >= in.Page*in.Size {
				content = append(content, newDelivery(d))
			}
			passed++
			return len(content) < in.Size
		})
		return api.NewPage(content, int64(known.Deliveries), in.Page, in.Size), nil
	})
}

type redeliverRequest struct {
	ID         ids.ID `path:"id"`
	DeliveryID ids.ID `path:"deliveryId"`
}

// redeliver is POST /api/webhooks/{id}/deliveries/{deliveryId}/redeliver.
func (r Resource) redeliver() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_redeliver_webhook",
		Routes: operation.Routes(
			"POST /api/webhooks/{id}/deliveries/{deliveryId}/redeliver"),
		Group: group, Summary: "Sends a delivery again at once, under its webhook-id",
		Description: "A finished delivery gets 8 tries again. A pending one is tried now.",
		Access:      auth.Write, Agents: operation.Adds, Reaches: true, Rate: limits.General,
		Status: 202,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller,
		in *redeliverRequest) (WebhookDelivery, error) {
		return r.send(ctx, client.SendDelivery{Webhook: in.ID, Customer: from.Customer,
			Message: in.DeliveryID})
	})
}
