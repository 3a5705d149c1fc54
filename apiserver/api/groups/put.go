package groups

import (
	"context"
	"errors"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

type putRequest struct {
	Body Group `body:"json"`
}

// Validate implements operation.Validator.
func (r *putRequest) Validate() fault.List {
	if strings.TrimSpace(r.Body.Name) == "" {
		return fault.List{fault.Invalid(fault.InvalidRequest, "name", "must not be blank")}
	}
	return nil
}

// Put is PUT /api/scraper/group.
func Put(s api.Services) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_put_group", Routes: operation.Routes("PUT /api/scraper/group"), Group: group,
		Summary:     "Creates a group, or replaces the one with the given id",
		Description: "The full body is sent always. An id that is not one of the customer's groups is refused.",
		Access:      auth.Write, Rate: limits.General, Idempotency: operation.Required,
		Errors: []fault.Code{fault.NotFound, fault.NameTaken, fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Group, error) {
		b := in.Body
		put := client.PutGroup{Create: b.ID.IsZero(), ID: b.ID, Customer: from.Customer, Name: b.Name,
			DataTable: b.DataTable, StartType: b.StartType, ShouldMatchProducts: b.ShouldMatchProducts}
		if put.Create {
			put.ID = s.IDs.New()
		}
		if put.DataTable == "" {
			put.DataTable = tableName(b.Name)
		}
		made, err := client.Do[client.Group](ctx, s.Client, put, from.Call)
		if errors.Is(err, fault.New(fault.GroupNotFound, "")) {
			// specification 7: an update of what does not exist for this customer answers 400
			return Group{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
		}
		if err != nil {
			return Group{}, err
		}
		return newGroup(&made), nil
	})
}

// tableName makes a label of a group's name: lower-case letters, digits and single underscores.
func tableName(name string) string {
	var label strings.Builder
	gap := false
	for _, c := range strings.ToLower(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			gap = label.Len() > 0
			continue
		}
		if gap {
			label.WriteByte('_')
			gap = false
		}
		label.WriteRune(c)
		if label.Len() >= 62 {
			break
		}
	}
	if label.Len() == 0 {
		return "data"
	}
	return label.String()
}
