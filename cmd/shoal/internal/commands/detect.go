package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/urllist"
	"shoal.dev/shoal/pkg/model"
)

// Detect is 'shoal detect', which shows how a page could be read.
type Detect struct {
	Connection
	URL       string `arg:"" help:"Address of the page."`
	Candidate int    `help:"Candidate to write with --out; by default the first." placeholder:"N"`
	Out       string `short:"o" xor:"form" help:"Write the candidate to this file, for 'shoal scraper put'; - for standard output." placeholder:"FILE"`
	Group     string `default:"default" help:"Group to save it in, by name or id; created if the name is new." placeholder:"GROUP"`
	Name      string `help:"Name to save it under; by default the host and the time." placeholder:"NAME"`
	Hidden    bool   `help:"Also read microdata and RDFa, where JSON-LD states nothing."`
	JSON      bool   `xor:"form" help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*Detect) Help() string {
	return `It reads the page once, charged like any other page, and shows candidates with their first rows, the best one first.
Nothing is saved.

Examples:

  shoal detect https://shop.example/lamps
  shoal detect https://shop.example/lamps --candidate 2 -o lamps.json
  shoal scraper put lamps.json --name lamps`
}

// Run shows the candidates.
func (c *Detect) Run(ctx context.Context, t *terminal.Terminal) error {
	if err := cmp.Or(checkAddress(c.URL), checkPlace(c.Out)); err != nil {
		return err
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	group, err := EnsureGroup(ctx, client, c.Group)
	if err != nil {
		return err
	}
	if c.Name == "" {
		c.Name = siteName(c.URL, t)
	}
	found, err := client.Detect(ctx,
		api.Look{Name: c.Name, GroupID: group.ID, URL: c.URL, HiddenData: c.Hidden})
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, found)
	}
	if len(found.Value) == 0 {
		return errNothingFound(c.URL, found.Reason)
	}
	if c.Out == "" {
		return writeCandidates(t.Out, t.Columns, found.Value)
	}
	chosen, err := candidate(found.Value, max(c.Candidate, 1))
	if err != nil {
		return err
	}
	return writeTo(t, c.Out, func(w io.Writer) error {
		return terminal.PrintJSON(w, chosen.ScraperDTO)
	})
}

// candidate returns the candidate with a number, from 1.
func candidate(found []api.Proposal, number int) (*api.Proposal, error) {
	if number < 1 || number > len(found) {
		return nil, terminal.Usagef("there is no candidate %d: 1 to %d", number, len(found))
	}
	return &found[number-1], nil
}

// errNothingFound gives the reason, if the server has one, and how to proceed without a candidate.
func errNothingFound(address, reason string) error {
	if reason != "" {
		reason = ": " + terminal.Printable(reason)
	}
	return &terminal.ExitError{Code: terminal.ExitFailed,
		Text: "nothing that makes rows was found on " + address + reason + "\n" + byHand(address)}
}

// byHand explains how to read a page that no candidate fits.
func byHand(address string) string {
	return fmt.Sprintf(`  shoal preview %s --find title --find price     what the page says of things by their names
  shoal preview %s --field 'title=h1'            what selectors of your own find
A page that scripts make needs a browser: see --chromium of 'shoal serve'.`, address, address)
}

// checkAddress rejects text that is not an address, and suggests what was meant.
func checkAddress(text string) error {
	if reason := urllist.Refuse(text); reason != "" {
		return terminal.Usagef("%q %s", text, reason)
	}
	return nil
}

// siteName is the default name of a scraper for a page.
func siteName(address string, t *terminal.Terminal) string {
	host := "page"
	if to, err := url.Parse(address); err == nil && to.Hostname() != "" {
		host = to.Hostname()
	}
	return ListName(host, stamp(t))
}

// writeCandidates shows each candidate as a table of its first rows.
func writeCandidates(w io.Writer, width int, found []api.Proposal) error {
	for i := range found {
		scraper, err := found[i].Scraper()
		if err != nil {
			return err
		}
		title := fmt.Sprintf("%d  %s", i+1, describe(&found[i], &scraper))
		if i > 0 {
			title = "\n" + title
		}
		if _, err := fmt.Fprintln(w, title); err != nil {
			return err
		}
		if err := writeSample(w, width, found[i].SampleData); err != nil {
			return err
		}
	}
	return nil
}

// describe sums up a candidate in a line: how many rows the server sent, what they consist of, and
// whether it continues on other pages.
func describe(p *api.Proposal, s *api.Scraper) string {
	columns := map[string]bool{}
	for _, row := range p.SampleData {
		if d, err := parseDocument(row); err == nil {
			for _, key := range d.keys {
				columns[key] = true
			}
		}
	}
	text := "a sample of " + terminal.Plural(int64(len(p.SampleData)), "row") + ", " +
		terminal.Plural(int64(len(columns)), "column") + ", " + kindOf(string(s.Type))
	if more := s.SourceConfig.Pagination; more != nil && more.Type != "" &&
		more.Type != model.PaginationNone {
		most := model.DefaultMaxPages
		if more.Max != nil {
			most = *more.Max
		}
		text += fmt.Sprintf(", follows up to %d pages", most)
	}
	return text
}

// kindOf describes a scraper's type in words.
func kindOf(scraperType string) string {
	switch scraperType {
	case "MULTIPLE_PRODUCTS":
		return "a row for each item of the page"
	case "SINGLE_PRODUCT":
		return "a row for the page"
	case "APPLICATION_LD_JSON":
		return "what the page states for machines (JSON-LD)"
	case "AI_CONF":
		return "what the page says of a schema"
	case "MARKETPLACE":
		return "a shop's offers"
	}
	return strings.ToLower(scraperType)
}

// Preview is 'shoal preview', which shows the rows that a page would give.
type Preview struct {
	Connection
	Target string   `arg:"" help:"Address of a page, or name or id of a scraper." placeholder:"URL|SCRAPER"`
	Field  []string `sep:"none" placeholder:"NAME=SELECTOR" help:"For an address: a field of each row, as in 'shoal run'; repeatable."`
	Find   []string `sep:"none" placeholder:"NAME" help:"For an address: something to look for on the page by its name; repeatable."`
	Group  string   `default:"default" help:"With --field: one of your groups, by name or id." placeholder:"GROUP"`
	JSON   bool     `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*Preview) Help() string {
	return `For a scraper it shows the rows of its first page. For an address it shows what --field extracts, or what --find finds on
the page by name. The page is charged like any other; nothing is saved.

Examples:

  shoal preview lamps
  shoal preview https://shop.example/lamp/1 --field title=h1 --field 'price=.price'
  shoal preview https://shop.example/lamp/1 --find price --find 'delivery time'`
}

// Run shows the preview.
func (c *Preview) Run(ctx context.Context, t *terminal.Terminal) error {
	isAddress := strings.Contains(c.Target, "://")
	switch {
	case !isAddress && len(c.Field)+len(c.Find) > 0:
		return terminal.Usagef("--field and --find look at an address: %q is none", c.Target)
	case isAddress && (len(c.Field) > 0) == (len(c.Find) > 0):
		return terminal.Usagef("an address needs --field or --find; `shoal detect %s` finds "+
			"fields by itself", c.Target)
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	switch {
	case !isAddress:
		return c.sample(ctx, t, client)
	case len(c.Find) > 0:
		return c.find(ctx, t, client)
	}
	return c.fields(ctx, t, client)
}

func (c *Preview) sample(ctx context.Context, t *terminal.Terminal, client *api.Client) error {
	scraper, err := findScraper(ctx, client, c.Target)
	if err != nil {
		return err
	}
	rows, err := client.Sample(ctx, scraper.Value.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, rows)
	}
	return c.show(t, rows.Value, rows.Reason)
}

// show shows rows, or why there are none.
func (c *Preview) show(t *terminal.Terminal, rows []json.RawMessage, reason string) error {
	if len(rows) == 0 {
		if reason == "" {
			reason = "no field matched on the page"
		}
		t.Notef("no row: %s", terminal.Printable(reason))
		return nil
	}
	return WriteTable(t.Out, func(yield func(json.RawMessage, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	})
}

func (c *Preview) find(ctx context.Context, t *terminal.Terminal, client *api.Client) error {
	found, err := client.Find(ctx, c.Target, c.Find)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, found)
	}
	if found.Reason != "" {
		t.Notef("%s", terminal.Printable(found.Reason))
	}
	var pairs [][]string
	for _, name := range c.Find {
		value := cell(found.Value.Fields[name])
		if value == "" {
			value = "-"
		}
		pairs = append(pairs, []string{name, value})
	}
	return terminal.PrintPairs(t.Out, pairs)
}

// fields shows what the given fields make of the page: the first candidate.
func (c *Preview) fields(ctx context.Context, t *terminal.Terminal, client *api.Client) error {
	fields, err := parseFields(c.Field)
	if err != nil {
		return err
	}
	group, err := EnsureGroup(ctx, client, c.Group)
	if err != nil {
		return err
	}
	found, err := client.Detect(ctx, api.Look{Name: siteName(c.Target, t), GroupID: group.ID,
		URL: c.Target, ItemsConfig: fields})
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, found)
	}
	for i := range found.Value {
		scraper, err := found.Value[i].Scraper()
		if err != nil {
			return err
		}
		if len(scraper.ItemsConfig) > 0 && scraper.ItemsConfig[0] == fields[0] {
			return c.show(t, found.Value[i].SampleData, found.Reason)
		}
	}
	return c.show(t, nil, found.Reason)
}
