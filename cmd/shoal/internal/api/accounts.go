package api

import (
	"context"
	"net/http"
)

// NewAccount is an account that is to be made.
type NewAccount struct {
	Email       string `json:"email"`
	Password    string `json:"password"`
	CustomerRef string `json:"customerRef"`
	Admin       bool   `json:"admin"`
}

// CreateAccount makes an account; the credential must be an administrator's.
func (c *Client) CreateAccount(ctx context.Context, account NewAccount) error {
	return c.send(ctx, http.MethodPost, "/api/admin/accounts", account, nil)
}
