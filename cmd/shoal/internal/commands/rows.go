package commands

import (
	"bytes"
	"context"
	"io"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// Rows is 'shoal rows', which streams rows to the terminal, a program or a file.
type Rows struct {
	Connection
	Job     string   `help:"Rows of this run." placeholder:"ID"`
	Scraper string   `help:"Rows of this scraper, by name or id." placeholder:"SCRAPER"`
	Group   string   `help:"Rows of this group, by name or id." placeholder:"GROUP"`
	LastRun bool     `help:"Only rows of each scraper's newest run."`
	Format  string   `default:"table" enum:"table,jsonl,csv,parquet,xlsx" help:"table for people, jsonl, csv and parquet for programs, xlsx for spreadsheets."`
	Filter  string   `help:"Only rows that match, as JSON, such as {\"price\":{\"$gt\":10}}. A quoted number compares as text." placeholder:"JSON"`
	Sort    string   `help:"Order by this field, then asc or desc, such as price,desc." placeholder:"FIELD"`
	Fields  []string `sep:"none" xor:"fields" help:"Only these fields, in this order, separated by commas as in csv." placeholder:"NAME,..."`
	Without []string `sep:"none" xor:"fields" help:"All but these fields, separated by commas as in csv." placeholder:"NAME,..."`
	Limit   int64    `help:"Most rows to read; 0 for all." placeholder:"N"`
	Out     string   `short:"o" help:"File to write, which appears only when complete; by default standard output." placeholder:"FILE"`
	FileForm
}

// FileForm says how a csv is written.
type FileForm struct {
	BOM   bool `name:"bom" help:"Begin a csv with a byte order mark, so that spreadsheets recognize UTF-8."`
	Guard bool `default:"true" negatable:"" help:"Put an apostrophe before csv text that a spreadsheet would take for a formula."`
}

// of describes a file of a format.
func (f FileForm) of(format string) api.File {
	return api.File{Format: format, BOM: f.BOM, Unguarded: !f.Guard}
}

// Help returns the command's help text.
func (*Rows) Help() string {
	return `Rows are streamed, however many there are. jsonl has each row as the server stores it, with the server's keys (_sourceUrl
and others that begin with _). In the other formats the columns are the configured fields in their order, then all other
fields of any row, then the server's keys. In csv, text that a spreadsheet would take for a formula gets an apostrophe
before it; --no-guard leaves it as it is. xlsx has at most 100,000 rows. If the connection breaks, csv and jsonl go on
after the last whole row, with the rows as they were when the command began. If nothing matches --filter because the
field's texts, such as 10.50 €, are not compared with numbers, standard error says so.

Examples:

  shoal rows --job 66f0c2a1b7d4e8f901234567
  shoal rows --job 66f0c2a1b7d4e8f901234567 --format csv --bom -o rows.csv
  shoal rows --group news --last-run --format xlsx -o news.xlsx
  shoal rows --scraper prices --fields 'title,"Price, EUR"'
  shoal rows --scraper prices --without _sourceUrl,_scrapedAt
  shoal rows --group news --last-run --format jsonl | jq -r .title`
}

// Run reads the rows.
func (c *Rows) Run(ctx context.Context, t *terminal.Terminal) error {
	switch {
	case c.Limit < 0:
		return terminal.Usagef("--limit: 0 or more")
	case c.Job == "" && c.Scraper == "" && c.Group == "":
		return terminal.Usagef("rows needs --job, --scraper or --group")
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	query, err := c.query(ctx, client)
	if err != nil {
		return err
	}
	var written lineCount
	err = writeTo(t, c.Out, func(w io.Writer) error {
		w = io.MultiWriter(w, &written)
		if c.Format == "table" {
			return WriteTable(w, client.Rows(ctx, query))
		}
		_, err := client.Export(ctx, query, c.of(c.Format), w)
		return err
	})
	if err != nil || c.Filter == "" || !written.isEmpty(c.Format) {
		return err
	}
	// That there are no rows is right, whether or not the server can say why.
	if reason, err := client.WhyNone(ctx, query); err == nil && reason != "" {
		t.Notef("%s", terminal.Printable(reason))
	}
	return nil
}

// lineCount counts the lines that are written to it.
type lineCount int

// Write implements io.Writer.
func (n *lineCount) Write(part []byte) (int, error) {
	*n += lineCount(bytes.Count(part, []byte{'\n'}))
	return len(part), nil
}

// isEmpty says whether a file of so many lines has no rows. Of xlsx and parquet lines tell nothing.
func (n lineCount) isEmpty(format string) bool {
	switch format {
	case "table", "jsonl":
		return n == 0
	case "csv":
		return n <= 1 // its header
	}
	return false
}

// query finds the ids of what is given by name.
func (c *Rows) query(ctx context.Context, client *api.Client) (api.RowQuery, error) {
	q := api.RowQuery{JobID: c.Job, LastRun: c.LastRun, Filters: c.Filter, Sort: c.Sort,
		Fields: c.Fields, Without: c.Without, Limit: c.Limit}
	if c.Scraper != "" {
		scraper, err := findScraper(ctx, client, c.Scraper)
		if err != nil {
			return q, err
		}
		q.ScraperID = scraper.Value.ID
	}
	if c.Group != "" {
		group, err := needGroup(ctx, client, c.Group)
		if err != nil {
			return q, err
		}
		q.GroupID = group.ID
	}
	return q, nil
}
