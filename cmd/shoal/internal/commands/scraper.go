package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/jsontext"
)

// Scrapers is 'shoal scraper', the commands for saved scrapers.
type Scrapers struct {
	List   ScraperList   `cmd:"" help:"List scrapers, newest first."`
	Get    ScraperGet    `cmd:"" help:"Write a scraper to a file."`
	Put    ScraperPut    `cmd:"" help:"Save a scraper from a file."`
	Copy   ScraperCopy   `cmd:"" help:"Save a scraper again under another name."`
	Delete ScraperDelete `cmd:"" help:"Delete a scraper; its rows stay."`
}

// Help returns the command's help text.
func (*Scrapers) Help() string {
	return `A scraper defines where to read and which fields to extract. A scraper file is the JSON of the API's ScraperDTO.

Examples:

  shoal detect https://shop.example/lamps -o lamps.json     propose a scraper for a page
  shoal scraper put lamps.json
  shoal scraper get lamps -o lamps.json
  shoal scraper copy lamps chairs`
}

// ScraperList is 'shoal scraper list'.
type ScraperList struct {
	Connection
	Group string `help:"Only scrapers of this group, by name or id." placeholder:"GROUP"`
	Q     string `name:"name" help:"Only scrapers whose name contains this text." placeholder:"TEXT"`
	Limit int    `default:"50" help:"Most scrapers to list, up to 1,000."`
	JSON  bool   `help:"Print the server's answer as JSON."`
}

// Run lists the scrapers.
func (c *ScraperList) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Limit < 1 || c.Limit > 1000 {
		return terminal.Usagef("--limit: 1 to 1,000")
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	filter := api.ScraperFilter{Q: c.Q}
	if c.Group != "" {
		group, err := needGroup(ctx, client, c.Group)
		if err != nil {
			return err
		}
		filter.GroupID = group.ID
	}
	rows, more := [][]string{}, false
	for page, err := range client.ScraperPages(ctx, filter, c.Limit) {
		if err != nil {
			return err
		}
		if c.JSON {
			return terminal.PrintJSON(t.Out, page)
		}
		for _, s := range page.Value.Items {
			if more = len(rows) == c.Limit; more {
				break
			}
			rows = append(rows, scraperRow(&s))
		}
		if more = more || page.Value.HasMore && len(rows) == c.Limit; more {
			break
		}
	}
	if err := terminal.PrintTable(t.Out, []string{"SCRAPER", "NAME", "TYPE", "FIELDS", "READS"},
		rows); err != nil {
		return err
	}
	if more {
		t.Notef("There are more: --limit, --group and --name choose.")
	}
	return nil
}

func scraperRow(s *api.Scraper) []string {
	var fields []string
	for _, field := range s.ItemsConfig {
		fields = append(fields, field.Name)
	}
	reads := s.SourceConfig.URL
	if reads == "" {
		reads = "lists"
	}
	return []string{s.ID, s.Name, string(s.Type), strings.Join(fields, ","), reads}
}

// ScraperGet is 'shoal scraper get'.
type ScraperGet struct {
	Connection
	Scraper string `arg:"" help:"Name or id of the scraper."`
	Out     string `short:"o" help:"File to write; by default standard output." placeholder:"FILE"`
}

// Run writes a scraper.
func (c *ScraperGet) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	scraper, err := findScraper(ctx, client, c.Scraper)
	if err != nil {
		return err
	}
	return writeTo(t, c.Out, func(w io.Writer) error {
		return terminal.PrintJSON(w, scraper.JSON)
	})
}

// ScraperPut is 'shoal scraper put'.
type ScraperPut struct {
	Connection
	File  string `arg:"" help:"File with the scraper's JSON; - reads standard input."`
	Name  string `help:"Save it under this name." placeholder:"NAME"`
	Group string `help:"Save it in this group, by name or id; created if the name is new." placeholder:"GROUP"`
	New   bool   `help:"Create a new scraper, even if the file has an id."`
	JSON  bool   `help:"Print the server's answer as JSON."`
}

// Help returns the command's help text.
func (*ScraperPut) Help() string {
	return `A file with an id replaces that scraper; a file without one creates a new scraper. The command prints the id.`
}

// maxScraper bounds the file of a scraper, in bytes.
const maxScraper = 1 << 20

// Run saves a scraper.
func (c *ScraperPut) Run(ctx context.Context, t *terminal.Terminal) error {
	text, err := readFile(t, c.File, maxScraper)
	if err != nil {
		return err
	}
	scraper, err := readScraper(c.File, text)
	if err != nil {
		return err
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	if c.New {
		delete(scraper, "id")
	}
	if c.Name != "" {
		scraper["name"] = c.Name
	}
	if group, named := scraper["groupRef"].(string); c.Group != "" || !named || group == "" {
		c.Group = cmp.Or(c.Group, "default")
	}
	saved, err := putInto(ctx, client, scraper, c.Group)
	if err != nil {
		return err
	}
	if !c.JSON {
		t.Notef("saved as %s", saved.Value.Name)
	}
	return printSaved(t, saved, c.JSON)
}

// putInto saves a scraper in a group, named or by id; "" leaves it in its own.
func putInto(ctx context.Context, client *api.Client, scraper map[string]any,
	group string) (api.Answer[api.Scraper], error) {
	if group != "" {
		found, err := EnsureGroup(ctx, client, group)
		if err != nil {
			return api.Answer[api.Scraper]{}, err
		}
		scraper["groupRef"] = found.ID
	}
	return client.PutScraper(ctx, scraper)
}

func printSaved(t *terminal.Terminal, saved api.Answer[api.Scraper], asJSON bool) error {
	if asJSON {
		return terminal.PrintJSON(t.Out, saved)
	}
	_, err := fmt.Fprintln(t.Out, saved.Value.ID)
	return err
}

// readScraper reads the JSON of a scraper, and keeps members as they are written.
func readScraper(from string, text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var scraper map[string]any
	if err := decoder.Decode(&scraper); err != nil {
		_, said := jsontext.Reason(err)
		return nil, terminal.Usagef("%s: no scraper's JSON: it %s", from, said)
	}
	return scraper, nil
}

// readFile reads a whole file, or standard input, of at most most bytes.
func readFile(t *terminal.Terminal, path string, most int64) ([]byte, error) {
	from := t.In
	if path != standard {
		file, err := os.Open(path)
		if err != nil {
			return nil, terminal.Usagef("%v", err)
		}
		defer func() { _ = file.Close() }() // read-only
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, terminal.Usagef("%s: longer than %d bytes", path, most)
	}
	return text, err
}

// ScraperCopy is 'shoal scraper copy'.
type ScraperCopy struct {
	Connection
	Scraper string `arg:"" help:"Name or id of the scraper."`
	Name    string `arg:"" help:"Name of the copy."`
	Group   string `help:"Save it in this group, by name or id; created if the name is new." placeholder:"GROUP"`
	JSON    bool   `help:"Print the server's answer as JSON."`
}

// Run copies a scraper.
func (c *ScraperCopy) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := findScraper(ctx, client, c.Scraper)
	if err != nil {
		return err
	}
	if source := found.Value.SourceConfig; source.URL == "" && source.Curl == "" &&
		len(source.Queries) == 0 {
		return &terminal.ExitError{Code: terminal.ExitFailed, Text: fmt.Sprintf(
			"%s reads a list; its fields read another one by `shoal run --template %s "+
				"--url-file LIST`", terminal.Printable(found.Value.Name), found.Value.ID)}
	}
	scraper, err := readScraper(c.Scraper, found.JSON)
	if err != nil {
		return err
	}
	delete(scraper, "id")
	scraper["name"] = c.Name
	saved, err := putInto(ctx, client, scraper, c.Group)
	if err != nil {
		return err
	}
	return printSaved(t, saved, c.JSON)
}

// ScraperDelete is 'shoal scraper delete'.
type ScraperDelete struct {
	Connection
	Scraper string `arg:"" help:"Name or id of the scraper."`
	Yes     bool   `short:"y" help:"Do not ask."`
	JSON    bool   `help:"Print the server's preview of what is deleted as JSON."`
}

// Help returns the command's help text.
func (*ScraperDelete) Help() string {
	return `It shows what is deleted with the scraper and asks for confirmation. Scraped rows and the history of runs stay.`
}

// Run deletes a scraper.
func (c *ScraperDelete) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := findScraper(ctx, client, c.Scraper)
	if err != nil {
		return err
	}
	id := found.Value.ID
	preview, err := client.PreviewDeleteScraper(ctx, id)
	if err != nil {
		return err
	}
	t.Notef("Scraper %s:", terminal.Printable(found.Value.Name))
	for _, warning := range preview.Value.PreviewSummary.Warnings {
		t.Notef("  %s", terminal.Printable(warning))
	}
	if !c.Yes {
		answer, err := ask(ctx, t, "Delete it? [y/N] ")
		if err != nil {
			return err
		}
		if !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
			return &terminal.ExitError{Code: terminal.ExitFailed, Text: "nothing is deleted"}
		}
	}
	if err := client.DeleteScraper(ctx, id, preview.Value.Token); err != nil {
		return err
	}
	t.Notef("%s is deleted", terminal.Printable(found.Value.Name))
	if c.JSON {
		return terminal.PrintJSON(t.Out, preview)
	}
	return nil
}
