package customers

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// FeedbackInput is a message to the operators (decision 42).
type FeedbackInput struct {
	Text string `json:"text" required:"true" min:"1" max:"4000" form:"filled" doc:"In the customer's own words"`
}

// Feedback is a message that a customer has sent to the operators.
type Feedback struct {
	ID        ids.ID   `json:"id"`
	Text      string   `json:"text"`
	CreatedAt api.Time `json:"createdAt"`
}

type giveFeedbackRequest struct {
	Body FeedbackInput `body:"json"`
}

// giveFeedback is POST /api/feedback.
func (r Resource) giveFeedback() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_give_feedback", Routes: operation.Routes("POST /api/feedback"), Group: group,
		Summary: "Sends the customer's feedback to the operators of the service",
		Description: "A customer may send feedback 10 times a day (UTC). It is kept for 400 " +
			"days; beyond 200, the oldest is removed.",
		Access: auth.Write, Rate: limits.General, Idempotency: operation.Optional,
		Errors: []fault.Code{fault.FeedbackLimit},
	}, func(ctx context.Context, from *operation.Caller, in *giveFeedbackRequest) (Feedback,
		error) {
		given, err := client.Do(ctx, r.Client, client.GiveFeedback{ID: r.IDs.New(),
			Customer: from.Customer, Text: in.Body.Text}, from.Call)
		return Feedback{ID: given.ID, Text: in.Body.Text, CreatedAt: api.Time(given.At)}, err
	})
}
