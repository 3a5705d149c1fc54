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
	return `It is for a node that does not come back: nodes that are gone for long are removed by themselves, those with a vote last
and only while enough others have one. A node that is there is refused, and so is one without whose vote no majority would
be left.

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
