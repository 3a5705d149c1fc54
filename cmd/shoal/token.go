package main

import (
	"context"
	"fmt"
)

type tokenCommand struct {
	Data     string `help:"Data directory of the service, whose local issuer signs." default:"./data" placeholder:"DIR"`
	Admin    bool   `help:"With administrator's rights."`
	Customer string `help:"For this customer; by default the self-hosting one." placeholder:"REF"`
}

// Help teaches the command.
func (*tokenCommand) Help() string {
	return `The token is good for an hour. A customer comes into being with its token's first use.

Example:

  curl -H "Authorization: Bearer $(shoal token --customer acme)" http://127.0.0.1:8080/api/wallet`
}

// Run prints a token.
func (c *tokenCommand) Run(ctx context.Context, t *terminal) error {
	token, err := t.service.token(ctx, c.Data, tokenRequest{Customer: c.Customer, Admin: c.Admin})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.out, token)
	return err
}

// tokenRequest is what the local issuer is asked for.
type tokenRequest struct {
	Customer string // "": the self-hosting customer
	Admin    bool
}
