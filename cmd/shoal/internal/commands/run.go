package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/model"
)

// Run is 'shoal run', which launches a list run from a file of addresses.
type Run struct {
	Connection
	URLFile   string   `name:"url-file" required:"" placeholder:"LIST" help:"File of addresses, one per line, or NDJSON ({\"url\": …} per line); - reads standard input."`
	Field     []string `sep:"none" placeholder:"NAME=SELECTOR" help:"A field of each row, as described above; repeatable."`
	Group     string   `help:"Group of the run, by name or id; created if the name is new. Default default. With --scraper it is the scraper's group." placeholder:"GROUP"`
	Name      string   `help:"Unique name of the run's scraper; by default the file's name and the time." placeholder:"NAME"`
	Type      string   `default:"SINGLE_PRODUCT" enum:"SINGLE_PRODUCT,MULTIPLE_PRODUCTS" help:"SINGLE_PRODUCT: one row per page. MULTIPLE_PRODUCTS: one row per item."`
	Scraper   string   `help:"Run this list scraper again, with this list; by name or id." placeholder:"NAME"`
	Template  string   `help:"Take fields, pagination and pace from this scraper." placeholder:"ID"`
	Rerun     bool     `xor:"again" help:"With --scraper: only addresses that were never charged."`
	Force     bool     `xor:"again" help:"With --scraper: all addresses again."`
	SkipBad   bool     `help:"Leave out lines that are not addresses, and list them."`
	MaxCharge *int64   `name:"max-charge" placeholder:"MICROS" help:"Stop the run before it costs more than this, in micros (millionths of a euro)."`
	Follow    bool     `short:"f" help:"Show progress until the run ends."`
	JSON      bool     `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*Run) Help() string {
	return `The list is streamed to the server and has at most 5,000,000 addresses. If lines are not addresses, they are listed with
what is wrong, and nothing is launched. With --skip-bad the run is launched without them.

A --field is a name and a CSS selector:

  --field title=h1                 the element's text
  --field 'link=a.more@href'       an attribute of the element
  --field 'sale=.badge-sale?'      true or false: is there such an element

Examples:

  shoal run --url-file list.txt --field title=h1 --field 'price=.price' --follow
  sort -u urls | shoal run --url-file - --field title=h1 --group news --name monday
  job=$(shoal run --url-file list.txt --field title=h1) && shoal job "$job" --follow

It prints the run's id. With --follow the exit code is 0 if the run COMPLETED, 3 if it FAILED, 4 if it was STOPPED.
Ctrl-C stops following, not the run.`
}

// Run launches the list run.
func (c *Run) Run(ctx context.Context, t *terminal.Terminal) error {
	fields, err := parseFields(c.Field)
	if err != nil {
		return err
	}
	recipes := 0
	for _, given := range []bool{len(fields) > 0, c.Scraper != "", c.Template != ""} {
		if given {
			recipes++
		}
	}
	if recipes != 1 {
		return terminal.Usagef("run needs --field, as in --field title=h1, or --template, or " +
			"--scraper, and only one of them")
	}
	list, err := openList(t, c.URLFile, c.SkipBad)
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }() // read-only
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	if c.Scraper != "" && !anID.MatchString(c.Scraper) {
		named, err := findScraper(ctx, client, c.Scraper)
		if err != nil {
			return err
		}
		c.Scraper = named.Value.ID
	}
	group, err := c.group(ctx, client)
	if err != nil {
		return err
	}
	if c.Name == "" && c.Scraper == "" {
		c.Name = ListName(c.URLFile, stamp(t))
	}
	query, err := c.query(group, fields)
	if err != nil {
		return err
	}
	answer, err := launchList(ctx, client, query, list)
	if err != nil {
		return err
	}
	launch := answer.Value
	if c.JSON {
		err = terminal.PrintJSON(t.Out, answer)
	} else {
		t.Notef("%s queued, %s dropped", terminal.Plural(launch.LinksQueued, "link"),
			terminal.Plural(launch.DuplicatesDropped, "duplicate"))
		_, err = fmt.Fprintln(t.Out, launch.JobID)
	}
	if err != nil || !c.Follow {
		return err
	}
	return Follow(ctx, t, client, launch.JobID, launch.LinksQueued)
}

// group returns the id of the run's group. For a scraper, "" stands for its own group.
func (c *Run) group(ctx context.Context, client *api.Client) (string, error) {
	switch {
	case c.Scraper == "":
		group, err := EnsureGroup(ctx, client, cmp.Or(c.Group, defaultGroup))
		return group.ID, err
	case c.Group == "":
		return "", nil
	}
	group, err := needGroup(ctx, client, c.Group)
	if err != nil {
		return "", err
	}
	return group.ID, nil
}

// query is the call's parameters without the list.
func (c *Run) query(group string, fields []model.Field) (url.Values, error) {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("groupId", group)
	set("name", c.Name)
	set("scraperId", c.Scraper)
	set("templateScraperId", c.Template)
	if len(fields) > 0 {
		items, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("encode fields: %w", err)
		}
		set("itemsConfig", string(items))
		set("type", c.Type)
	}
	if c.Rerun {
		set("rerun", "true")
	}
	if c.Force {
		set("force", "true")
	}
	if c.MaxCharge != nil {
		set("maxChargeMicros", strconv.FormatInt(*c.MaxCharge, 10))
	}
	return query, nil
}
