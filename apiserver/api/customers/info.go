package customers

import (
	"context"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// AdditionalInfo has values that a customer stores under its own keys.
type AdditionalInfo map[string]string

func newInfo(profile *client.Profile) AdditionalInfo {
	info := AdditionalInfo{}
	if profile != nil {
		for _, i := range profile.Info {
			info[i.Key] = i.Value
		}
	}
	return info
}

type putInfoRequest struct {
	Body AdditionalInfo `body:"json" keys:"max=64 form=filled" each:"max=4096"`
}

// putInfo is PUT /api/customer/preferences/additional-info.
func (r Resource) putInfo() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_put_additional_info",
		Routes: operation.Routes("PUT /api/customer/preferences/additional-info"), Group: group,
		Summary: "Stores values under keys that the customer chooses",
		Description: "Keys that are not named stay as they are. A customer has at most " +
			"100 keys, and 65,536 bytes of keys and values.",
		Access: auth.Write, Agents: operation.Sets, Feature: plans.DataCharts, Rate: limits.General,
		Errors: []fault.Code{fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *putInfoRequest) (AdditionalInfo,
		error) {
		change := client.ChangeInfo{Customer: from.Customer}
		for key, value := range in.Body {
			change.Set = append(change.Set, client.Info{Key: key, Value: value})
		}
		slices.SortFunc(change.Set,
			func(a, b client.Info) int { return strings.Compare(a.Key, b.Key) })
		return r.changeInfo(ctx, from, change)
	})
}

func (r Resource) changeInfo(ctx context.Context, from *operation.Caller,
	change client.ChangeInfo) (AdditionalInfo, error) {
	profile, err := client.Do(ctx, r.Client, change, from.Call)
	if err != nil {
		return nil, err
	}
	return newInfo(&profile), nil
}

// getInfo is GET /api/customer/preferences/additional-info.
func (Resource) getInfo() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_additional_info",
		Routes: operation.Routes("GET /api/customer/preferences/additional-info"), Group: group,
		Summary: "Returns all keys and values that the customer stores",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (AdditionalInfo, error) {
		return newInfo(from.View.Profile(from.Customer)), nil
	})
}

type deleteInfoRequest struct {
	Key string `path:"key" min:"1" max:"64"`
}

// deleteInfo is DELETE /api/customer/preferences/additional-info/{key}.
func (r Resource) deleteInfo() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_delete_additional_info",
		Routes: operation.Routes("DELETE /api/customer/preferences/additional-info/{key}"),
		Group:  group, Summary: "Removes a key, and returns what remains",
		Description: "Removing a key that does not exist changes nothing.",
		Access:      auth.Write, Agents: operation.Destroys, Rate: limits.General,
	}, func(ctx context.Context, from *operation.Caller, in *deleteInfoRequest) (AdditionalInfo,
		error) {
		if profile := from.View.Profile(from.Customer); profile == nil {
			return AdditionalInfo{}, nil
		}
		return r.changeInfo(ctx, from, client.ChangeInfo{Customer: from.Customer,
			Remove: []string{in.Key}})
	})
}
