package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// FeedbackEntry is a message of a customer to the operators.
type FeedbackEntry struct {
	ID                ids.ID   `json:"id"`
	CustomerUniqueRef string   `json:"customerUniqueRef"`
	Email             string   `json:"email" doc:"Empty until the customer has signed up"`
	Text              string   `json:"text"`
	CreatedAt         api.Time `json:"createdAt"`
}

func newFeedbackEntry(view *client.View, f *client.Feedback) FeedbackEntry {
	entry := FeedbackEntry{ID: f.ID, CustomerUniqueRef: f.Customer, Text: f.Text,
		CreatedAt: api.Time(f.At)}
	if profile := view.Profile(f.Customer); profile != nil {
		entry.Email = profile.Email
	}
	return entry
}

type feedbackRequest struct {
	Ref  string `query:"customerRef" max:"128" doc:"Only feedback from the customer with this customerUniqueRef"`
	Page int    `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size int    `query:"size" default:"50" min:"1" clamp:"200" code:"invalid_page"`
}

// feedback is GET /api/admin/feedback.
func (r Resource) feedback() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_feedback", Routes: operation.Routes("GET /api/admin/feedback"),
		Group: group, Summary: "Lists feedback from customers, newest first",
		Description: "Feedback is kept for 400 days: the newest 200 of each customer, and the " +
			"newest 10,000 in all. When a customer is removed, so is its feedback.",
		Access: auth.Admin, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller,
		in *feedbackRequest) (api.Page[FeedbackEntry], error) {
		if err := api.Reach(in.Page, in.Size, "narrow the list with customerRef"); err != nil {
			return api.Page[FeedbackEntry]{}, err
		}
		var content []FeedbackEntry
		found, first := 0, in.Page*in.Size
		from.View.NewestFeedback(func(f *client.Feedback) bool {
			if in.Ref == "" || in.Ref == f.Customer {
				if found >= first && found < first+in.Size {
					content = append(content, newFeedbackEntry(from.View, f))
				}
				found++
			}
			return true
		})
		return api.NewPage(content, int64(found), in.Page, in.Size), nil
	})
}
