// Package notifications owns the operations on notifications in the application (specification 6).
// Customers choose their channels in api/customers.
package notifications

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const group = "Notifications"

// Resource has the operations on notifications and their dependencies.
type Resource struct{ Client client.Proposer }

// Operations lists all operations.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.list(),
		r.unread(),
		r.put(),
		r.readAll(),
	}
}

// Notification tells the customer about an event.
type Notification struct {
	ID        ids.ID      `json:"id" doc:"Id of what happened: the same in every channel and in repeats"`
	Event     model.Event `json:"event" doc:"One of the preferences' identifiers, or MORE_NOTICES"`
	Title     string      `json:"title"`
	Text      string      `json:"text" scraped:"-"`
	CreatedAt api.Time    `json:"createdAt"`
	Read      bool        `json:"read"`
	JobID     *ids.ID     `json:"jobId" doc:"The run concerned"`
	ScraperID *ids.ID     `json:"scraperId" doc:"The run's scraper, or the one whose start was refused"`
	KeyID     *ids.ID     `json:"keyId" doc:"The API key concerned"`
	GroupID   *ids.ID     `json:"groupId" doc:"The group concerned"`
	// TransactionID is the id of a wallet transaction.
	TransactionID *ids.ID `json:"transactionId" doc:"The transaction of the top-up concerned"`
	WebhookID     *ids.ID `json:"webhookId" doc:"The webhook that was switched off"`
	Count         uint64  `json:"count" doc:"How many notices it stands for: 1, except for MORE_NOTICES"`
	// Facts are the same as in a webhook's call.
	Facts notices.NotificationFacts `json:"facts" doc:"Data behind the title and text: only the member for the event is present"`
}

// NewNotification converts a notice to the API's form.
func NewNotification(n *client.Notice) Notification {
	told := Notification{ID: n.ID, Event: n.Event, Title: notices.Title(n), Text: notices.Text(n),
		CreatedAt: api.Time(n.At), Read: n.Read, Count: 1, Facts: notices.FactsOf(n)}
	if n.Event == model.MoreNotices {
		told.Count = max(n.Count, 1)
	}
	switch {
	case n.Event == model.APIKeyCreated:
		told.KeyID = &n.Subject
	case n.Event == model.TopUpApplied:
		told.TransactionID = &n.Subject
	case n.Event == model.GroupShared:
		told.GroupID = &n.Subject
	case n.Event == model.StartRefused && !n.Scraper.IsZero():
		told.ScraperID = &n.Scraper
	case n.Event == model.StartRefused:
		told.GroupID = &n.Subject
	case n.Event == model.WebhookDisabled:
		told.WebhookID = &n.Subject
	case !n.Subject.IsZero():
		told.JobID, told.ScraperID = &n.Subject, &n.Scraper
	}
	return told
}

// UnreadNotifications is the number of unread notifications.
type UnreadNotifications struct {
	Unread uint32 `json:"unread"`
}

type listRequest struct {
	Unread bool `query:"unread" default:"false" doc:"Lists only unread notifications"`
	Page   int  `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size   int  `query:"size" default:"20" min:"1" clamp:"200" code:"invalid_page"`
}

// list is GET /api/notifications.
func (Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_notifications", Routes: operation.Routes("GET /api/notifications"),
		Group: group, Summary: "Lists the customer's notifications, newest first",
		Description: "Notifications are kept for 90 days. Beyond 1,000, the oldest read one is " +
			"removed. If none was read, the newest one counts those that found no room.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidPage},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) (api.Page[Notification],
		error) {
		var none api.Page[Notification]
		if err := api.Reach(in.Page, in.Size, "a customer has 1,001 notices"); err != nil {
			return none, err
		}
		inbox := from.View.Inbox(from.Customer)
		total := inbox.Notices
		if in.Unread {
			total = inbox.Unread
		}
		var content []Notification
		skip := in.Page * in.Size
		from.View.Notices(from.Customer, func(n *client.Notice) bool {
			if in.Unread && n.Read {
				return true
			}
			if skip--; skip < 0 {
				content = append(content, NewNotification(n))
			}
			return len(content) < in.Size
		})
		return api.NewPage(content, int64(total), in.Page, in.Size), nil
	})
}

// unread is GET /api/notifications/unread.
func (Resource) unread() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_count_unread_notifications",
		Routes: operation.Routes("GET /api/notifications/unread"), Group: group,
		Summary: "Counts the notifications that the customer has not read",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (UnreadNotifications, error) {
		return UnreadNotifications{Unread: from.View.Inbox(from.Customer).Unread}, nil
	})
}

// NotificationInput is a change of a notification.
type NotificationInput struct {
	Read bool `json:"read" required:"true" doc:"Whether it was read"`
}

type putRequest struct {
	ID   ids.ID            `path:"id"`
	Body NotificationInput `body:"json"`
}

// put is PUT /api/notifications/{id}.
func (r Resource) put() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_put_notification", Routes: operation.Routes("PUT /api/notifications/{id}"),
		Group: group, Summary: "Marks a notification as read or unread",
		Description: "Returns how many are then unread.",
		Access:      auth.Write, Agents: operation.Sets, Rate: limits.General,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (UnreadNotifications,
		error) {
		if in.ID.IsZero() { // the command takes zero for all of them
			return UnreadNotifications{},
				fault.Invalid(fault.NotFound, "id", "no notice has this id")
		}
		return r.mark(ctx, client.ReadNotices{Customer: from.Customer, ID: in.ID,
			Unread: !in.Body.Read})
	})
}

// readAll is POST /api/notifications/read.
func (r Resource) readAll() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_read_notifications", Routes: operation.Routes("POST /api/notifications/read"),
		Group: group, Summary: "Marks all notifications as read",
		Description: "Returns how many are then unread: those that came meanwhile.",
		Access:      auth.Write, Agents: operation.Sets, Rate: limits.General,
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (UnreadNotifications,
		error) {
		return r.mark(ctx, client.ReadNotices{Customer: from.Customer})
	})
}

func (r Resource) mark(ctx context.Context, read client.ReadNotices) (UnreadNotifications, error) {
	inbox, err := client.Do(ctx, r.Client, read, nil)
	return UnreadNotifications{Unread: inbox.Unread}, err
}
