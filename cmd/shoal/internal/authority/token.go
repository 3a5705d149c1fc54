package authority

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
)

// Token is 'shoal token', which signs a person in with the local issuer.
type Token struct {
	Data     string `help:"Data directory of the service whose local issuer signs the token." default:"./data" placeholder:"DIR"`
	Admin    bool   `help:"Give the token administrator rights."`
	Customer string `help:"Customer of the token; by default the self-hosting one." placeholder:"REF"`
}

// Help returns the command's help text.
func (*Token) Help() string {
	return `The first use of a customer's token creates the customer.

Example:

  curl -H "Authorization: Bearer $(shoal token --customer acme)" http://127.0.0.1:8080/api/wallet`
}

// Run prints a token.
func (c *Token) Run(t *terminal.Terminal) error {
	token, err := SignToken(c.Data, c.Customer, c.Admin, t.Clock.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.Out, token)
	return err
}

// tokenLife is how long a token of the local issuer is valid.
const tokenLife = time.Hour

// SignToken signs a sign-in token with the local issuer of a data directory, or with the authority
// if there is one. An empty customer is the self-hosting one.
func SignToken(dir, customer string, admin bool, now time.Time) (string, error) {
	customer = cmp.Or(customer, apiserver.SelfCustomer)
	authority, err := identity.ReadAuthority(filepath.Join(dir, FileName))
	switch {
	case err == nil:
		return apiserver.SignToken(authority.SignInKey, customer, admin, now, tokenLife)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	token, err := apiserver.MintToken(dir, customer, admin, now, tokenLife)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no server has started in %s: %w", dir, err)
	}
	return token, err
}
