package commands

import (
	"context"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/work"
)

// Work is 'shoal work', which lists background work, stuck items first.
type Work struct {
	Connection
	Kind     string `help:"Only items of this kind." placeholder:"KIND"`
	State    string `default:"" enum:",WAITING,READY,HELD,FAILED" help:"Only items in this state: WAITING, READY, HELD or FAILED." placeholder:"STATE"`
	Customer string `help:"Only this customer's items." placeholder:"REF"`
	Limit    int    `default:"50" help:"Most items to list, up to 200."`
	JSON     bool   `help:"Print the items as JSON."`
}

// Help returns the command's help text.
func (*Work) Help() string {
	return `An item is WAITING until it is due, READY for a node, HELD by one, or FAILED (given up). Failed items come first, then
those without progress for longest. The service's own items have no customer.

The kinds: ` + strings.Join(work.Kinds(), ", ") + `.

It signs in as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY.`
}

// Run lists the items.
func (c *Work) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Limit < 1 || c.Limit > 200 {
		return terminal.Usagef("--limit: 1 to 200")
	}
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	client.Impatient()
	open, err := client.Work(ctx,
		api.WorkFilter{Kind: c.Kind, State: c.State, Customer: c.Customer}, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, open)
	}
	items, total := open.Value.Content, open.Value.TotalElements
	rows := make([][]string, len(items))
	for i := range items {
		rows[i] = workRow(&items[i])
	}
	if err := terminal.PrintTable(t.Out, []string{"ITEM", "KIND", "CUSTOMER", "STATE", "NODE",
		"DUE (UTC)", "STOOD STILL", "FAILURES", "ERROR"}, rows); err != nil {
		return err
	}
	if int64(len(items)) < total {
		t.Notef("%d of %s", len(items), terminal.Plural(total, "item"))
	}
	return nil
}

func workRow(item *api.WorkItem) []string {
	text := func(from *string) string {
		if from == nil {
			return ""
		}
		return *from
	}
	stood := ""
	if item.StoodStill > 0 {
		stood = terminal.Lasted(item.StoodStill)
	}
	failure, _, _ := strings.Cut(text(item.Error), "\n")
	return []string{item.ID, item.Kind, text(item.CustomerRef), item.State, text(item.Node),
		terminal.Moment(item.DueAt), stood, strconv.FormatUint(uint64(item.Failures), 10), failure}
}
