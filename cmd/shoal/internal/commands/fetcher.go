package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/clock"
)

// Fetcher is 'shoal fetcher', an operator's orders to a fetcher.
type Fetcher struct {
	Drain FetcherDrain `cmd:"" help:"Move a fetcher's work to the others, before maintenance of its machine."`
}

// FetcherDrain is 'shoal fetcher drain', which moves a fetcher's shards to the others.
type FetcherDrain struct {
	Connection
	Node    string         `arg:"" help:"Name of the node."`
	Wait    bool           `help:"Wait until the node owns no shard and holds nothing open."`
	Timeout *time.Duration `help:"With --wait: longest time to wait; by default 5m."`
	Undo    bool           `help:"Undo the drain: the node gets its share again."`
}

// Help returns the command's help text.
func (*FetcherDrain) Help() string {
	return `The node finishes its current pages, which takes at most two fetch timeouts however slow hosts are. Then it hands its
shards over and takes none until --undo; a restart does not end a drain. No page is fetched twice. Without another fetcher
the work waits for one.

The exit code is 0 once the drain is ordered, or with --wait once it is done. It is 1 if the drain was not done in time or
the node died meanwhile.

Examples:

  shoal fetcher drain f1 --wait     # then stop, work on or replace the machine
  shoal fetcher drain f1 --undo`
}

// Validate checks combinations of flags.
func (c *FetcherDrain) Validate() error {
	switch {
	case c.Undo && c.Wait:
		return errors.New("--undo is done at once: leave --wait out")
	case c.Timeout != nil && !c.Wait:
		return errors.New("--timeout: only with --wait")
	case c.Timeout != nil && *c.Timeout <= 0:
		return errors.New("--timeout: above 0s")
	}
	return checkNode(c.Node)
}

// drainTimeout is how long --wait waits without --timeout.
const drainTimeout = 5 * time.Minute

// drainPoll is how often a drain's progress is polled.
const drainPoll = time.Second

// Run gives or cancels the order, and follows it.
func (c *FetcherDrain) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Drain(ctx, c.Node, !c.Undo); err != nil {
		return err
	}
	switch {
	case c.Undo:
		t.Notef("%s takes part again", c.Node)
		return nil
	case !c.Wait:
		t.Notef("%s drains; shoal cluster nodes shows how far it is", c.Node)
		return nil
	}
	timeout := drainTimeout
	if c.Timeout != nil {
		timeout = *c.Timeout
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = c.follow(waiting, t, client)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &terminal.ExitError{Code: terminal.ExitFailed,
			Text: fmt.Sprintf("%s is not done within %v; it goes on draining", c.Node, timeout)}
	}
	return err
}

// follow shows the progress until the node is done.
func (c *FetcherDrain) follow(ctx context.Context, t *terminal.Terminal, client *api.Client) error {
	said := ""
	for {
		seen, err := client.Nodes(ctx)
		passing := errors.Is(err, api.ErrUnreachable) ||
			api.IsStatus(err, http.StatusServiceUnavailable)
		if err != nil && !passing {
			return err
		}
		if err == nil {
			nodes := seen.Value
			at := slices.IndexFunc(nodes, func(n api.Node) bool { return n.Name == c.Node })
			if at < 0 {
				return &terminal.ExitError{Code: terminal.ExitFailed,
					Text: c.Node + " was removed from the cluster"}
			}
			progress, done, err := drainProgress(&nodes[at])
			if progress != said {
				t.Notef("%s", progress)
				said = progress
			}
			if done || err != nil {
				return err
			}
		}
		if !clock.Pause(ctx, t.Clock, drainPoll) {
			return ctx.Err()
		}
	}
}

// drainProgress reports the progress of a drain.
func drainProgress(n *api.Node) (text string, done bool, err error) {
	text = fmt.Sprintf("%s: %s, %s, %s open", n.Name, n.State,
		terminal.Plural(int64(n.Shards), "shard"), terminal.Plural(int64(n.Open), "task"))
	switch {
	case n.State == "DRAINED" || n.State == "LEFT":
		return text, true, nil
	case !n.Draining:
		return text, false, &terminal.ExitError{Code: terminal.ExitFailed,
			Text: "somebody took the drain back"}
	case n.State == "FAILED":
		return text, false, &terminal.ExitError{Code: terminal.ExitFailed,
			Text: n.Name + " is not heard any more: its shards go to others once its " +
				"leases have ended"}
	}
	return text, false, nil
}
