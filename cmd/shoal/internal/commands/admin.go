package commands

import (
	"context"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Admin has the commands for accounts of people who sign in.
type Admin struct {
	Create  AdminCreate  `cmd:"" help:"Create an account that signs in with a password and administers the service."`
	List    AdminList    `cmd:"" help:"List the accounts that sign in with a password."`
	Disable AdminDisable `cmd:"" help:"Keep an account from signing in, and end its sessions."`
	Enable  AdminEnable  `cmd:"" help:"Let a disabled account sign in again."`
	Reset   AdminReset   `cmd:"" help:"Create a link to replace a forgotten password, or set a new one here."`
	Remove  AdminRemove  `cmd:"" help:"Remove an account."`
}

// AdminCreate is 'shoal admin create'.
type AdminCreate struct {
	Connection
	Email    string `arg:"" help:"E-mail address to sign in with."`
	Customer string `help:"Customer as which the account signs in." default:"self" placeholder:"REF"`
}

// Help returns the command's help text.
func (*AdminCreate) Help() string {
	return `It asks for the password twice and does not show it. Without a terminal it reads the password from the next line of the
input. A password has 12 to 256 characters. The account signs in at /sign-in of the service, which must be running.

Example:

  shoal admin create ops@example.com`
}

// Run makes the account.
func (c *AdminCreate) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	password, err := newPassword(ctx, t)
	if err != nil {
		return err
	}
	err = client.CreateAccount(ctx, api.NewAccount{Email: c.Email, Password: password,
		CustomerRef: c.Customer, Admin: true})
	if err != nil {
		return err
	}
	t.Notef("%s signs in at %s/sign-in", c.Email, client.Server())
	return nil
}

// newPassword asks for a new password, and asks a person to repeat it.
func newPassword(ctx context.Context, t *terminal.Terminal) (string, error) {
	password, err := t.Secret(ctx, "Password: ")
	if err != nil || !t.Asks() {
		return password, err
	}
	again, err := t.Secret(ctx, "Once more: ")
	if err == nil && again != password {
		err = terminal.Usagef("the two passwords differ")
	}
	return password, err
}
