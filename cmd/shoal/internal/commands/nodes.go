package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Nodes is 'shoal cluster nodes', which lists the nodes as the leader sees them.
type Nodes struct {
	Connection
	JSON bool `help:"Print the nodes as JSON."`
}

// Help returns the command's help text.
func (*Nodes) Help() string {
	return `It shows every node as the leader sees it: its state (ALIVE, DRAINING, DRAINED, LEFT, FAILED), its role in Raft, and how
many entries it lags behind (- if it did not report). For fetchers it also shows their tiers, the shards they own (+ those
being moved), the tasks they hold, their pace, and the age of their last heartbeat. Runs can use only tiers that all
fetchers have.

It signs in as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY.`
}

// Run lists the nodes.
func (c *Nodes) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	client.Impatient()
	seen, err := client.Nodes(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, seen)
	}
	nodes := seen.Value
	led := slices.ContainsFunc(nodes, leads)
	if !led {
		t.Notef("The control plane has no leader. This is what the answering node knows by itself.")
	}
	rows := make([][]string, len(nodes))
	for i := range nodes {
		rows[i] = nodeRow(&nodes[i], unheard(led))
	}
	return terminal.PrintTable(t.Out,
		[]string{"NODE", "STATE", "ROLES", "VERSION", "RAFT", "LAG", "CAPACITY", "TIERS", "SHARDS",
			"OPEN", "PAGES/S",
			"HEARD"}, rows)
}

func leads(n api.Node) bool { return n.Suffrage == "LEADER" }

func nodeRow(n *api.Node, unheard string) []string {
	row := []string{n.Name, n.State, strings.Join(n.Roles, ","), n.Version,
		strings.ToLower(n.Suffrage),
		lagOf(n, func(lag uint64) string { return strconv.FormatUint(lag, 10) }), "", "", "", "",
		"", ""}
	if n.GoneMillis != nil {
		row[1] += " for " + terminal.Lasted(*n.GoneMillis)
	}
	if n.Capacity == 0 {
		return row
	}
	shards := strconv.Itoa(n.Shards)
	if n.Moving > 0 {
		shards = fmt.Sprintf("%d (%d moving)", n.Shards, n.Moving)
	}
	row = append(row[:6], strconv.FormatUint(uint64(n.Capacity), 10), strings.Join(n.Tiers, ","),
		shards, terminal.Count(int64(n.Open)),
		strconv.FormatFloat(n.PagesPerSecond, 'f', 1, 64), unheard)
	if n.LeaseAgeMillis != nil {
		row[11] = terminal.Lasted(*n.LeaseAgeMillis) + " ago"
	}
	return row
}
