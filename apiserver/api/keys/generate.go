package keys

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// GeneratedKey is a new key. No other answer contains its secret.
type GeneratedKey struct {
	ID        ids.ID      `json:"id"`
	Prefix    string      `json:"prefix" doc:"7 characters"`
	Name      string      `json:"name"`
	Scope     model.Scope `json:"scope" enum:"USER,LLM_READ,LLM_FULL"`
	Key       string      `json:"key" doc:"The whole key. It is shown only once."`
	CreatedAt api.Time    `json:"createdAt"`
	ExpiresAt api.Time    `json:"expiresAt" doc:"From when the key is refused; null: it does not expire"`
}

type generateRequest struct {
	Name  string      `query:"name" form:"filled-line" required:"true" min:"1" max:"64" doc:"Label of the key"`
	Scope model.Scope `query:"scope" required:"true" enum:"USER,LLM_READ,LLM_FULL" code:"invalid_scope" doc:"What the key may do"`
	// ExpiresAt is 0 if it is missing.
	ExpiresAt api.Time `query:"expiresAt" doc:"From when the key is refused, in the future; without it the key does not expire"`
}

// generate is PUT /api/key/generate.
func (r Resource) generate() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_generate_key", Routes: operation.Routes("PUT /api/key/generate"), Group: group,
		Summary: "Makes an API key",
		Description: "Only this answer holds the whole key. Its secret has 256 random bits. " +
			"Keys of scope LLM_READ and LLM_FULL cannot make keys. An expired key is refused " +
			"like an unknown one, and stays in the list until it is deleted.",
		Access: auth.Mint, Rate: limits.Mint,
		Errors: []fault.Code{fault.InvalidScope, fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *generateRequest) (GeneratedKey,
		error) {
		if in.ExpiresAt != 0 && in.ExpiresAt <= api.Time(r.Clock.Now().UnixMilli()) {
			return GeneratedKey{}, fault.Invalid(fault.InvalidRequest, "expiresAt",
				"must be in the future")
		}
		secret := auth.NewSecret()
		key, err := client.Do(ctx, r.Client,
			client.MintKey{ID: r.IDs.New(), Customer: from.Customer,
				Prefix: secret.Prefix, Hash: secret.Hash, Name: in.Name, Scope: in.Scope,
				ExpiresAt: int64(in.ExpiresAt)}, nil)
		if err != nil {
			return GeneratedKey{}, err
		}
		return GeneratedKey{ID: key.ID, Prefix: key.Prefix, Name: key.Name, Scope: key.Scope,
			Key:       secret.Text,
			CreatedAt: api.Time(key.CreatedAt), ExpiresAt: api.Time(key.ExpiresAt)}, nil
	})
}
