package customers

import (
	"context"
	"maps"
	"slices"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// NotificationPreferences are the channels by which a customer is told of each event.
type NotificationPreferences map[model.Event]model.NoticePreference

func newPreferences(inbox client.Inbox) NotificationPreferences {
	preferences := NotificationPreferences{}
	for _, event := range model.Events() {
		preferences[event] = inbox.Preference(event)
	}
	return preferences
}

type putPreferencesRequest struct {
	Body NotificationPreferences `body:"json"`
}

// putPreferences is PUT /api/customer/preferences/notifications.
func (r Resource) putPreferences() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_put_notification_preferences",
		Routes: operation.Routes("PUT /api/customer/preferences/notifications"), Group: group,
		Summary: "Sets how the customer is notified of each event",
		Description: "Events that are not named stay as they are. The ways are EMAIL, IN_APP, " +
			"BOTH and NONE. Notices that cannot be e-mailed appear in the application.",
		Access: auth.Write, Agents: operation.Sets, Rate: limits.General,
		Errors: []fault.Code{fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller,
		in *putPreferencesRequest) (NotificationPreferences, error) {
		change := client.PreferNotices{Customer: from.Customer}
		for _, event := range slices.Sorted(maps.Keys(in.Body)) {
			change.Set = append(change.Set, client.Preference{Event: event,
				How: in.Body[event]})
		}
		inbox, err := client.Do(ctx, r.Client, change, from.Call)
		if err != nil {
			return nil, err
		}
		return newPreferences(inbox), nil
	})
}

// getPreferences is GET /api/customer/preferences/notifications.
func (Resource) getPreferences() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_notification_preferences",
		Routes: operation.Routes("GET /api/customer/preferences/notifications"), Group: group,
		Summary: "Returns how the customer is notified of each event",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (NotificationPreferences,
		error) {
		return newPreferences(from.View.Inbox(from.Customer)), nil
	})
}
