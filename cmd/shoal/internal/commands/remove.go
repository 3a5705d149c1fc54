package commands

import (
	"context"
	"errors"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Remove is 'shoal cluster remove', which removes a node that is gone from the cluster.
type Remove struct {
	Connection
	Node string `arg:"" help:"Name of the node."`
}

// Help returns the command's help text.
func (*Remove) Help() string {
	return `Use it for a node that will not come back. A node that is gone for long loses its vote automatically, while enough other
voters remain. It stays in 'shoal cluster nodes' until it comes back or you remove it. The command refuses a node that is
alive, and one whose vote is needed for a majority.

Example:

  shoal cluster remove cp2`
}

// Validate checks what the parser does not.
func (c *Remove) Validate() error { return checkNode(c.Node) }

// checkNode refuses the empty name, which a script passes when a variable is not set.
func checkNode(name string) error {
	if name == "" {
		return errors.New("<node>: want a node's name")
	}
	return nil
}

// Run removes a node.
func (c *Remove) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.RemoveNode(ctx, c.Node); err != nil {
		return err
	}
	t.Notef("%s is not part of the cluster any more", c.Node)
	return nil
}
