// Package keys owns the operations on API keys (specification 4.13).
package keys

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const group = "API keys"

// Resource has the operations on API keys and their dependencies.
type Resource struct {
	Client  client.Proposer
	IDs     ids.Source
	Clock   clock.Clock
	Touches *auth.Touches // records when keys were used
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.whoAmI(),
		r.generate(),
		r.list(),
		r.delete(),
	}
}

// Key is an API key without its secret.
type Key struct {
	ID         ids.ID      `json:"id"`
	Prefix     string      `json:"prefix" doc:"7 characters"`
	Name       string      `json:"name"`
	Scope      model.Scope `json:"scope" enum:"USER,LLM_READ,LLM_FULL"`
	CreatedAt  api.Time    `json:"createdAt"`
	LastUsedAt api.Time    `json:"lastUsedAt"`
	// LastUsedAddress is nil if the key was never used, or if its caller is unknown.
	LastUsedAddress *string  `json:"lastUsedAddress" doc:"Address of the last caller, as far as trusted proxies report it"`
	ExpiresAt       api.Time `json:"expiresAt" doc:"From when the key is refused; null: it does not expire"`
}

// NewKey converts a key to the API's form. touches may know later uses than the record.
func NewKey(k *client.Key, touches *auth.Touches) Key {
	use := touches.LastUse(k)
	key := Key{ID: k.ID, Prefix: k.Prefix, Name: k.Name, Scope: k.Scope,
		CreatedAt: api.Time(k.CreatedAt), LastUsedAt: api.Time(use.At),
		ExpiresAt: api.Time(k.ExpiresAt)}
	if use.Address != "" {
		key.LastUsedAddress = &use.Address
	}
	return key
}
