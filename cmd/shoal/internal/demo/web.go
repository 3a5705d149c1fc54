package demo

import (
	"context"
	"fmt"
	"net"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/testkit/synthweb"
)

// Web serves the demo web in its own process, so that its resource use can be told apart from the
// service's.
type Web struct {
	Listen string `help:"Address of the demo web." default:"127.0.0.1:8090" placeholder:"IP:PORT"`
	List   int    `help:"Print this many of its addresses and exit, instead of serving." placeholder:"N"`
}

// Run serves until the context ends.
func (c *Web) Run(ctx context.Context, t *terminal.Terminal) error {
	web, err := synthweb.New(synthweb.Demo())
	if err != nil {
		return err
	}
	if c.List > 0 {
		for address := range web.URLs(c.List) {
			if _, err := fmt.Fprintln(t.Out, address); err != nil {
				return err
			}
		}
		return nil
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("demo web: %w", err)
	}
	t.Notef("Demo web on %s; for shoal serve:\n  --egress-allow 127.0.0.0/8 --egress-origin '%s=%s'",
		listener.Addr(), web.Pattern(), listener.Addr())
	return web.Serve(ctx, listener)
}
