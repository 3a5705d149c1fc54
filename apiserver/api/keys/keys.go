// Package keys owns the operations on API keys (specification 4.13).
package keys

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const group = "API keys"

// Key is an API key without its secret.
type Key struct {
	ID         ids.ID      `json:"id"`
	Prefix     string      `json:"prefix" doc:"7 characters"`
	Name       string      `json:"name"`
	Scope      model.Scope `json:"scope" enum:"USER,LLM_READ,LLM_FULL"`
	CreatedAt  api.Time    `json:"createdAt"`
	LastUsedAt api.Time    `json:"lastUsedAt"`
}

func newKey(k *client.Key, touches *auth.Touches) Key {
	return Key{ID: k.ID, Prefix: k.Prefix, Name: k.Name, Scope: k.Scope,
		CreatedAt:  api.Time(k.CreatedAt),
		LastUsedAt: api.Time(touches.LastUsed(k))}
}
