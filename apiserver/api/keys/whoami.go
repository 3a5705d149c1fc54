package keys

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Identity describes a credential. A sign-in has no key: its id and prefix are empty, and its scope
// is USER.
type Identity struct {
	CustomerRef string      `json:"customerRef"`
	Scope       model.Scope `json:"scope" enum:"USER,LLM_READ,LLM_FULL"`
	Prefix      string      `json:"prefix"`
	Name        string      `json:"name"`
	ID          ids.ID      `json:"id"`
	CreatedAt   api.Time    `json:"createdAt"`
	LastUsedAt  api.Time    `json:"lastUsedAt"`
	ExpiresAt   api.Time    `json:"expiresAt" doc:"For a key: from when it is refused; null: it does not expire"`
	Admin       bool        `json:"admin" doc:"The caller may use the operations of administrators"`
}

// whoAmI is GET /api/key/whoami.
func (r Resource) whoAmI() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_whoami", Routes: operation.Routes("GET /api/key/whoami"), Group: group,
		Summary: "Returns who the credential belongs to",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (Identity, error) {
		if from.SignIn() {
			return Identity{CustomerRef: from.Customer, Scope: model.ScopeUser,
				Admin: from.Admin}, nil
		}
		k := NewKey(from.Key, r.Touches)
		return Identity{CustomerRef: from.Customer, Scope: k.Scope, Prefix: k.Prefix, Name: k.Name,
			ID:        k.ID,
			CreatedAt: k.CreatedAt, LastUsedAt: k.LastUsedAt, ExpiresAt: k.ExpiresAt}, nil
	})
}
