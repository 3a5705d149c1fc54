package commands

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Status is 'shoal status', the service at a glance.
type Status struct {
	Connection
	JSON bool `help:"Print the status as JSON."`
}

// Help returns the command's help text.
func (*Status) Help() string {
	return `It signs in as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY.`
}

// Run shows the status.
func (c *Status) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	client.Impatient()
	answer, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, answer)
	}
	status := answer.Value
	leader := status.Leader
	if leader == "" {
		leader = "none: the control plane has no leader"
		if voters := votersSeen(ctx, client); voters != "" {
			leader += "; voters as seen here: " + voters
		}
	}
	pairs := [][]string{
		{"server", client.Server()},
		{"node", status.Node}, {"roles", strings.Join(status.Roles, ", ")},
		{"leader", leader}, {"term", strconv.FormatUint(status.Term, 10)},
		{"applied", "index " + strconv.FormatUint(status.Applied, 10)},
		{"commands", strconv.FormatUint(status.Commands, 10) + " applied since the start"},
		{"shards", strconv.Itoa(status.Owned) + " of " + strconv.Itoa(status.Shards) + " owned"},
		{"open runs", strconv.Itoa(status.OpenJobs)}, {"units out", terminal.Count(status.Out)},
	}
	for _, topic := range slices.Sorted(maps.Keys(status.Lag)) {
		pairs = append(pairs, []string{"lag of " + topic,
			terminal.Plural(status.Lag[topic], "record")})
	}
	return terminal.PrintPairs(t.Out, pairs)
}

// votersSeen names the voters and their states, "" if unknown.
func votersSeen(ctx context.Context, client *api.Client) string {
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return ""
	}
	var voters []string
	for _, n := range nodes.Value {
		if n.Suffrage == "VOTER" {
			voters = append(voters, n.Name+" "+strings.ToLower(n.State))
		}
	}
	return strings.Join(voters, ", ")
}
