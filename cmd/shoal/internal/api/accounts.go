package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// NewAccount is an account to create.
type NewAccount struct {
	Email       string `json:"email"`
	Password    string `json:"password"`
	CustomerRef string `json:"customerRef"`
	Admin       bool   `json:"admin"`
}

const accountsPath = "/api/admin/accounts"

// CreateAccount creates an account that a person signs in with; the credential must be an
// administrator's.
func (c *Client) CreateAccount(ctx context.Context, account NewAccount) error {
	return c.ask(ctx, http.MethodPost, accountsPath, account, nil)
}

// Account is a person who signs in. Times are ISO 8601, "" for none.
type Account struct {
	ID                string `json:"id"`
	Email             string `json:"email"`
	CustomerRef       string `json:"customerRef"`
	Admin             bool   `json:"admin"`
	CreatedAt         string `json:"createdAt"`
	DisabledAt        string `json:"disabledAt"`
	PasswordChangedAt string `json:"passwordChangedAt"`
}

// AccountFilter narrows the accounts; empty fields match everything. Q is a part of the address.
type AccountFilter struct {
	Q, Customer string
	Disabled    bool
}

// Accounts lists accounts by e-mail address; the credential must be an administrator's.
func (c *Client) Accounts(ctx context.Context, filter AccountFilter,
	size int) (Answer[Page[Account]], error) {
	query := url.Values{"size": {strconv.Itoa(size)}}
	for name, value := range map[string]string{"q": filter.Q, "customer": filter.Customer} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if filter.Disabled {
		query.Set("disabled", "true")
	}
	var list Answer[Page[Account]]
	err := c.get(ctx, accountsPath, query, &list)
	return list, err
}

// DisableAccount keeps an account from signing in, or allows it again; the credential must be an
// administrator's.
func (c *Client) DisableAccount(ctx context.Context, id string, disable bool) error {
	method := http.MethodPut
	if !disable {
		method = http.MethodDelete
	}
	return c.ask(ctx, method, accountsPath+"/"+url.PathEscape(id)+"/disable", nil, nil)
}

// RemoveAccount removes an account; the credential must be an administrator's.
func (c *Client) RemoveAccount(ctx context.Context, id string) error {
	return c.ask(ctx, http.MethodDelete, accountsPath+"/"+url.PathEscape(id), nil, nil)
}

// PasswordLink is where a person sets the password of an account. Link begins with / if the server
// does not know its public address. ExpiresAt is ISO 8601.
type PasswordLink struct {
	Link      string `json:"link"`
	ExpiresAt string `json:"expiresAt"`
}

// MakePasswordLink makes a link for an account; the credential must be an administrator's.
func (c *Client) MakePasswordLink(ctx context.Context, id string) (PasswordLink, error) {
	var made PasswordLink
	err := c.ask(ctx, http.MethodPost, accountsPath+"/"+url.PathEscape(id)+"/password-link", nil,
		&made)
	return made, err
}

// SetPassword sets another password for an account; the credential must be an administrator's.
func (c *Client) SetPassword(ctx context.Context, id, password string) error {
	return c.ask(ctx, http.MethodPut, accountsPath+"/"+url.PathEscape(id)+"/password",
		map[string]string{"password": password}, nil)
}
