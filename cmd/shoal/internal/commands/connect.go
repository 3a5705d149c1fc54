// Package commands has the commands that are clients of the API, one per file. They decide nothing
// that the API does not, and show its answers.
package commands

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/authority"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Connection says where the service is and who is calling.
type Connection struct {
	Data   string `help:"Data directory of the service, where its address and API key are." default:"./data" placeholder:"DIR"`
	Server string `help:"Base address of the service, instead of the one in the data directory." placeholder:"URL"`
	Key    string `help:"API key or sign-in token, instead of the key in the data directory." placeholder:"KEY"`
}

// Client connects with the customer's key.
func (c *Connection) Client(t *terminal.Terminal) (*api.Client, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	return c.with(t, key)
}

// key returns the customer's key.
func (c *Connection) key() (string, error) {
	if c.Key != "" {
		return c.Key, nil
	}
	key, err := datadir.ReadLine(c.Data, datadir.KeyFile)
	if err != nil {
		return "", noAccess(err, "no API key: start `shoal serve --data %s` first, or set "+
			"SHOAL_KEY, to what `shoal token` prints "+
			"where the sign-in key of a cluster is", c.Data)
	}
	return key, nil
}

// AdminClient connects as an administrator: with the given sign-in token, or with one from the
// local issuer of the data directory.
func (c *Connection) AdminClient(t *terminal.Terminal) (*api.Client, error) {
	token := c.Key
	if token == "" || strings.HasPrefix(token, "svc_live_") {
		var err error
		if token, err = authority.SignToken(c.Data, "", true, t.Clock.Now()); err != nil {
			return nil, noAccess(err, "no administrator's token from %s; set SHOAL_KEY to one",
				c.Data)
		}
	}
	return c.with(t, token)
}

func (c *Connection) with(t *terminal.Terminal, credential string) (*api.Client, error) {
	server, err := c.address()
	if err != nil {
		return nil, err
	}
	return api.New(server, credential, t.Clock, func(notice string) { t.Notef("%s", notice) }), nil
}

// address returns where the service is.
func (c *Connection) address() (string, error) {
	server := c.Server
	if server == "" {
		var err error
		if server, err = datadir.ReadLine(c.Data, datadir.AddressFile); err != nil {
			return "", noAccess(err, "no running service in %s: start `shoal serve --data %s`, "+
				"or set SHOAL_SERVER",
				c.Data, c.Data)
		}
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return server, nil
}

// noAccess is the error of a command that lacks an address or a key. It includes the cause, unless
// that is a missing file, which the text explains.
func noAccess(cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if !errors.Is(cause, fs.ErrNotExist) {
		text += ": " + cause.Error()
	}
	return &terminal.ExitError{Code: terminal.ExitNoAccess, Text: text}
}
