package customers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// NotificationPreferences say by which ways the customer is told of events, by their identifiers.
type NotificationPreferences map[string]model.NoticePreference

func newPreferences(inbox client.Inbox) NotificationPreferences {
	preferences := NotificationPreferences{}
	for _, event := range model.Events() {
		preferences[string(event)] = inbox.Preference(event)
	}
	return preferences
}

type putPreferencesRequest struct {
	Body NotificationPreferences `body:"json"`
}

// Validate implements operation.Validator.
func (r *putPreferencesRequest) Validate() fault.List {
	var list fault.List
	for _, event := range slices.Sorted(maps.Keys(r.Body)) {
		if !slices.Contains(model.Events(), model.Event(event)) {
			list = append(list, fault.Invalid(fault.InvalidRequest, event,
				"is not the identifier of an event"))
			continue
		}
		if how := r.Body[event]; !slices.Contains(model.NoticePreferences(), how) {
			list = append(list, fault.Invalid(fault.InvalidRequest, event,
				"must be one of %s", strings.Trim(fmt.Sprint(model.NoticePreferences()), "[]")))
		}
	}
	return list
}

// putPreferences is PUT /api/customer/preferences/notifications.
func (r Resource) putPreferences() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_put_notification_preferences",
		Routes: operation.Routes("PUT /api/customer/preferences/notifications"), Group: group,
		Summary: "Sets by which ways the customer is told of events",
		Description: "Events that the body does not name stay as they are. The ways are EMAIL, " +
			"IN_APP, BOTH and NONE. What cannot be sent by e-mail stands in the application.",
		Access: auth.Write, Rate: limits.General,
		Errors: []fault.Code{fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller,
		in *putPreferencesRequest) (NotificationPreferences, error) {
		change := client.PreferNotices{Customer: from.Customer}
		for _, event := range slices.Sorted(maps.Keys(in.Body)) {
			change.Set = append(change.Set, client.Preference{Event: model.Event(event),
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
		Summary: "Answers by which ways the customer is told of each event",
		Access:  auth.Read, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (NotificationPreferences,
		error) {
		return newPreferences(from.View.Inbox(from.Customer)), nil
	})
}
