package commands

import (
	"context"
	"fmt"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// AdminList is 'shoal admin list'.
type AdminList struct {
	Connection
	Q        string `name:"match" help:"Only accounts with this text in their e-mail address." placeholder:"TEXT"`
	Customer string `help:"Only accounts of this customer." placeholder:"REF"`
	Disabled bool   `help:"Only accounts that are disabled."`
	Limit    int    `default:"50" help:"Most accounts to list, up to 200."`
	JSON     bool   `help:"Print the accounts as JSON."`
}

// Help returns the command's help text.
func (*AdminList) Help() string {
	return `The list has administrators and customers' people.`
}

// Run lists the accounts.
func (c *AdminList) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Limit < 1 || c.Limit > mostAccounts {
		return terminal.Usagef("--limit: 1 to %d", mostAccounts)
	}
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Accounts(ctx, api.AccountFilter{Q: c.Q, Customer: c.Customer,
		Disabled: c.Disabled}, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, list)
	}
	var rows [][]string
	for _, a := range list.Value.Content {
		role, state := "customer", "signs in"
		if a.Admin {
			role = "administrator"
		}
		if a.DisabledAt != "" {
			state = "disabled " + terminal.Moment(a.DisabledAt)
		}
		rows = append(rows, []string{a.ID, a.Email, a.CustomerRef, role, state,
			terminal.Moment(a.CreatedAt)})
	}
	if err := terminal.PrintTable(t.Out, []string{"ACCOUNT", "E-MAIL", "CUSTOMER", "ROLE", "STATE",
		"CREATED (UTC)"}, rows); err != nil {
		return err
	}
	if n := int64(len(rows)); n < list.Value.TotalElements {
		t.Notef("%d of %s", n, terminal.Plural(list.Value.TotalElements, "account"))
	}
	return nil
}

// mostAccounts is the largest page of the API.
const mostAccounts = 200

// oneAccount holds the account that a command acts on.
type oneAccount struct {
	Connection
	Account string `arg:"" help:"E-mail address of the account, or its id." placeholder:"ACCOUNT"`
}

// with finds the account and calls do with it.
func (c *oneAccount) with(ctx context.Context, t *terminal.Terminal,
	do func(*api.Client, api.Account) error) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	if !strings.Contains(c.Account, "@") {
		return do(client, api.Account{ID: c.Account, Email: c.Account})
	}
	list, err := client.Accounts(ctx, api.AccountFilter{Q: c.Account}, mostAccounts)
	if err != nil {
		return err
	}
	for _, a := range list.Value.Content {
		if strings.EqualFold(a.Email, c.Account) {
			return do(client, a)
		}
	}
	return &terminal.ExitError{Code: terminal.ExitFailed,
		Text: "no account has the e-mail address " + c.Account + ": 'shoal admin list' shows all"}
}

// AdminDisable is 'shoal admin disable'.
type AdminDisable struct{ oneAccount }

// Help returns the command's help text.
func (*AdminDisable) Help() string {
	return `Its sessions end at once, on every server. Its customer's API keys stay valid. 'shoal audit list' and the list of keys show
which ones the account has made.

Example:

  shoal admin disable ann@example.com`
}

// Run disables the account.
func (c *AdminDisable) Run(ctx context.Context, t *terminal.Terminal) error {
	return c.with(ctx, t, func(client *api.Client, a api.Account) error {
		if err := client.DisableAccount(ctx, a.ID, true); err != nil {
			return err
		}
		t.Notef("%s does not sign in any more; its sessions have ended", a.Email)
		return nil
	})
}

// AdminEnable is 'shoal admin enable'.
type AdminEnable struct{ oneAccount }

// Run enables the account.
func (c *AdminEnable) Run(ctx context.Context, t *terminal.Terminal) error {
	return c.with(ctx, t, func(client *api.Client, a api.Account) error {
		if err := client.DisableAccount(ctx, a.ID, false); err != nil {
			return err
		}
		t.Notef("%s may sign in again", a.Email)
		return nil
	})
}

// AdminReset is 'shoal admin reset'.
type AdminReset struct {
	oneAccount
	Password bool `help:"Ask for a new password and set it, instead of creating a link."`
}

// Help returns the command's help text.
func (*AdminReset) Help() string {
	return `It prints a link at which the person sets a new password. The link works once, for 24 hours. Whoever has it can take over
the account, so give it to nobody else. It begins with --public-url of the service, or else with the address of --server.
The account's sessions end when the password is set.

Without a terminal, --password reads the password from the next line of the input.

Example:

  shoal admin reset ann@example.com`
}

// Run makes a link, or sets the password.
func (c *AdminReset) Run(ctx context.Context, t *terminal.Terminal) error {
	return c.with(ctx, t, func(client *api.Client, a api.Account) error {
		if c.Password {
			password, err := newPassword(ctx, t)
			if err != nil {
				return err
			}
			if err := client.SetPassword(ctx, a.ID, password); err != nil {
				return err
			}
			t.Notef("%s has another password; its sessions have ended", a.Email)
			return nil
		}
		made, err := client.MakePasswordLink(ctx, a.ID)
		if err != nil {
			return err
		}
		if strings.HasPrefix(made.Link, "/") {
			made.Link = client.Server() + made.Link
		}
		t.Notef("%s sets a new password there, once, until %s UTC:", a.Email,
			terminal.Moment(made.ExpiresAt))
		_, err = fmt.Fprintln(t.Out, made.Link)
		return err
	})
}

// AdminRemove is 'shoal admin remove'.
type AdminRemove struct{ oneAccount }

// Help returns the command's help text.
func (*AdminRemove) Help() string {
	return `Its sessions end at once. Its customer stays, with all its data. The e-mail address becomes free for another account. If
the account may come back, disable it instead.`
}

// Run removes the account.
func (c *AdminRemove) Run(ctx context.Context, t *terminal.Terminal) error {
	return c.with(ctx, t, func(client *api.Client, a api.Account) error {
		if err := client.RemoveAccount(ctx, a.ID); err != nil {
			return err
		}
		t.Notef("%s is removed", a.Email)
		return nil
	})
}
