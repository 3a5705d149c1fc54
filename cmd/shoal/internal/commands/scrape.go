package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/urllist"
)

// Scrape is 'shoal scrape', from an address or a list of them to a file of rows.
type Scrape struct {
	Connection
	Target    string `arg:"" optional:"" help:"Address of a page, or file of addresses, one per line; - reads standard input." placeholder:"URL|LIST"`
	Scraper   string `help:"Read with this scraper, by name or id, instead of looking for one." placeholder:"SCRAPER"`
	Yes       bool   `short:"y" help:"Take the first candidate, or the one in --candidate, without asking."`
	Candidate int    `help:"Take this candidate without asking." placeholder:"N"`
	Pages     int    `help:"Follow a list over at most this many pages; 1 reads only the given page." placeholder:"N"`
	Format    string `default:"csv" enum:"csv,jsonl,parquet,xlsx" help:"csv, jsonl, parquet or xlsx."`
	Out       string `short:"o" help:"File to write, which appears only when complete; by default standard output." placeholder:"FILE"`
	FileForm
	Group     string `help:"Group of the run, by name or id; created if the name is new. Default default." placeholder:"GROUP"`
	Name      string `help:"Name of the scraper that is saved; by default the host and the time." placeholder:"NAME"`
	Hidden    bool   `help:"Also read microdata and RDFa, where JSON-LD states nothing."`
	SkipBad   bool   `help:"Leave out lines of the list that are not addresses, and list them."`
	MaxCharge *int64 `name:"max-charge" placeholder:"MICROS" help:"Stop the run before it costs more than this, in micros (millionths of a euro)."`
}

// Help returns the command's help text.
func (*Scrape) Help() string {
	return `It reads the page, shows the possible rows as tables, asks which ones you want, reads all pages and writes the rows. For a
list it proposes rows from the first address and reads the others the same way. No selector is needed.

Examples:

  shoal scrape https://shop.example/lamps -o lamps.csv
  shoal scrape https://shop.example/lamps --yes --pages 3 > lamps.csv
  shoal scrape list.txt --yes --format jsonl -o rows.jsonl
  shoal scrape --scraper lamps -o lamps.csv                             again, tomorrow

Your choice is saved as a scraper, which 'shoal scraper' shows and changes. Ctrl-C stops following, not the run; 'shoal
rows' writes its rows later. The exit codes are those of 'shoal run --follow'.`
}

// Run goes from an address to rows.
func (c *Scrape) Run(ctx context.Context, t *terminal.Terminal) error {
	list, err := c.open(t)
	if err != nil {
		return err
	}
	if list != nil {
		defer func() { _ = list.Close() }() // read-only
	}
	client, err := c.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	var group api.Group
	if c.Target != "" { // otherwise the scraper's own list
		if group, err = EnsureGroup(ctx, client, cmp.Or(c.Group, defaultGroup)); err != nil {
			return err
		}
	}
	if c.Name == "" {
		c.Name = c.defaultName(t, list)
	}
	scraper, err := c.scraper(ctx, t, client, group, list)
	if err != nil {
		return err
	}
	launch, err := c.launch(ctx, client, group, scraper.ID, list)
	if err != nil {
		return err
	}
	t.Notef("Run %s of scraper %q", launch.JobID, scraper.Name)
	ended := Follow(ctx, t, client, launch.JobID, launch.LinksQueued)
	var exit *terminal.ExitError
	if ended != nil && (!errors.As(ended, &exit) || exit.Code == terminal.ExitInterrupted) {
		return ended
	}
	if c.toFile() && exit != nil && exit.Code == terminal.ExitRunFailed {
		t.Notef("%s is left as it was.\n  shoal rows --job %s   has what the run read", c.Out,
			launch.JobID)
		return ended
	}
	if err := c.write(ctx, t, client, launch.JobID); err != nil {
		return err
	}
	c.sayHow(t, launch.JobID, scraper.Name)
	return ended
}

// open scans the list, if there is one.
func (c *Scrape) open(t *terminal.Terminal) (*urllist.List, error) {
	if err := checkPlace(c.Out); err != nil {
		return nil, err
	}
	switch {
	case c.Pages < 0:
		return nil, terminal.Usagef("--pages: 1 or more")
	case c.Target == "" && c.Scraper == "":
		return nil, terminal.Usagef("scrape needs an address, a file of addresses, or --scraper")
	case c.Scraper != "" && (c.Pages > 0 || c.Hidden || c.Candidate > 0):
		return nil, terminal.Usagef("--scraper reads as it was saved: --pages, --hidden and " +
			"--candidate are for looking at a page")
	case c.Scraper != "" && c.Target == "" && (c.Group != "" || c.Name != ""):
		return nil, terminal.Usagef("--scraper has a group and a name of its own: --group and " +
			"--name are for what is made")
	case c.Scraper != "" && strings.Contains(c.Target, "://"):
		return nil, terminal.Usagef("--scraper has an address of its own; a file of addresses " +
			"may stand beside it")
	case c.Target == "":
		return nil, nil
	case strings.Contains(c.Target, "://"):
		return nil, checkAddress(c.Target)
	case c.Target != standard:
		if _, err := os.Stat(c.Target); err != nil {
			if guess, ok := urllist.Suggest(c.Target); ok {
				return nil, terminal.Usagef("%q is no file, and has no scheme: is it %s?",
					c.Target, guess)
			}
			return nil, terminal.Usagef("%v", err)
		}
	}
	return openList(t, c.Target, c.SkipBad)
}

func (c *Scrape) defaultName(t *terminal.Terminal, list *urllist.List) string {
	if list != nil {
		return ListName(c.Target, stamp(t))
	}
	return siteName(c.Target, t)
}

// scraper returns what the pages are read with: the named scraper, or the chosen candidate, saved.
func (c *Scrape) scraper(ctx context.Context, t *terminal.Terminal, client *api.Client,
	group api.Group, list *urllist.List) (api.Scraper, error) {
	if c.Scraper != "" {
		found, err := findScraper(ctx, client, c.Scraper)
		return found.Value, err
	}
	look := api.Look{Name: c.Name, GroupID: group.ID, URL: c.Target, HiddenData: c.Hidden}
	if list != nil {
		look.URL, look.Name = list.First, terminal.Cut("fields of "+c.Name, 200)
	}
	t.Notef("Looking at %s", look.URL)
	found, err := client.Detect(ctx, look)
	if err != nil {
		return api.Scraper{}, err
	}
	chosen, err := c.choose(ctx, t, look.URL, found)
	if err != nil {
		return api.Scraper{}, err
	}
	scraper, err := readScraper("the candidate", chosen.ScraperDTO)
	if err != nil {
		return api.Scraper{}, err
	}
	if c.Pages > 0 {
		boundPages(scraper, c.Pages)
	}
	saved, err := client.PutScraper(ctx, scraper)
	return saved.Value, err
}

// choose shows the candidates and asks which one to use.
func (c *Scrape) choose(ctx context.Context, t *terminal.Terminal, address string,
	answer api.Answer[[]api.Proposal]) (*api.Proposal, error) {
	found := answer.Value
	if len(found) == 0 {
		return nil, errNothingFound(address, answer.Reason)
	}
	if c.Yes || c.Candidate > 0 {
		chosen, err := candidate(found, max(c.Candidate, 1))
		if err != nil {
			return nil, err
		}
		scraper, err := chosen.Scraper()
		if err != nil {
			return nil, err
		}
		t.Notef("Candidate %d of %d: %s", max(c.Candidate, 1), len(found),
			describe(chosen, &scraper))
		return chosen, nil
	}
	if err := writeCandidates(t.Err, t.Columns, found); err != nil {
		return nil, err
	}
	for range 5 {
		question := "\nTake it? 1 for yes, 0 for no [1] "
		if len(found) > 1 {
			question = fmt.Sprintf("\nWhich one? 1 to %d, 0 for none [1] ", len(found))
		}
		answer, err := ask(ctx, t, question)
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(answer)
		switch {
		case answer == "":
			return &found[0], nil
		case err == nil && number == 0:
			return nil, &terminal.ExitError{Code: terminal.ExitFailed,
				Text: "none was chosen, and nothing is run\n" + byHand(address)}
		case err == nil && number >= 1 && number <= len(found):
			return &found[number-1], nil
		}
		t.Notef("%q is no number of a candidate", terminal.Printable(answer))
	}
	return nil, terminal.Usagef("no candidate was chosen")
}

// boundPages limits how many pages of a list a scraper follows.
func boundPages(scraper map[string]any, pages int) {
	source, _ := scraper["sourceConfig"].(map[string]any)
	pagination, _ := source["pagination"].(map[string]any)
	switch {
	case pagination == nil:
	case pages == 1:
		delete(source, "pagination")
	default:
		pagination["max"] = json.Number(strconv.Itoa(pages))
	}
}

// launch runs the scraper itself, or applies it to a list.
func (c *Scrape) launch(ctx context.Context, client *api.Client, group api.Group, scraper string,
	list *urllist.List) (api.Launch, error) {
	if list == nil {
		launch, err := client.RunScraper(ctx, scraper, c.MaxCharge)
		return launch.Value, launchError(err)
	}
	query := url.Values{"groupId": {group.ID}, "name": {c.Name}, "templateScraperId": {scraper}}
	if c.MaxCharge != nil {
		query.Set("maxChargeMicros", strconv.FormatInt(*c.MaxCharge, 10))
	}
	launch, err := launchList(ctx, client, query, list)
	return launch.Value, err
}

func (c *Scrape) write(ctx context.Context, t *terminal.Terminal, client *api.Client,
	job string) error {
	return writeTo(t, c.Out, func(w io.Writer) error {
		_, err := client.Export(ctx, api.RowQuery{JobID: job}, c.of(c.Format), w)
		return err
	})
}

// toFile says whether the rows go to a file.
func (c *Scrape) toFile() bool { return c.Out != "" && c.Out != standard }

// sayHow prints how to proceed.
func (c *Scrape) sayHow(t *terminal.Terminal, job, scraper string) {
	if c.toFile() {
		t.Notef("The rows are in %s.", c.Out)
	}
	if c.Scraper == "" && c.Target != "" && strings.Contains(c.Target, "://") {
		t.Notef("  shoal scrape --scraper '%s'   reads it again", scraper)
	}
	t.Notef("  shoal rows --job %s   has the rows again", job)
}
