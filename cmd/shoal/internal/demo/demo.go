// Package demo is what a newcomer tries first: the service on a built-in web, and a whole cluster
// that takes commands.
package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/commands"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// Parameters of the demo.
const (
	DemoPages       = 2000 // all pages of the demo's web
	demoGroup       = "demo"
	demoTemplate    = "demo products"
	DemoRate        = 20 // request starts per second and host, for the demo's own scraper only
	demoConnections = 4
	demoRows        = 8
	demoNeeds       = 1_000_000  // micros: well above the cost of 2,000 plain pages
	demoCredit      = 10_000_000 // micros
	demoEmail       = "demo@shoal.example"
	demoLink        = 15 * time.Minute // how long the sign-in link is valid
	portalPath      = "/portal"
)

// Command is 'shoal demo', the first run: a service, a small web and a list run over it.
type Command struct {
	Data   string `help:"Directory for all data." default:"./data" placeholder:"DIR"`
	Listen string `help:"Address of the API." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
}

// Help returns the command's help text.
func (*Command) Help() string {
	return `It serves as 'shoal serve' does and adds a web of 40 small shops on the loopback. It reads their 2,000 pages through the
public API and shows rows, ledger and balance. Then it serves until Ctrl-C. When run again it finds its data, and
reads the pages once more.

Only the demo's own scraper may exceed one page per second and host; your lists stay polite. Unlike 'shoal serve' it lets
every key read what listens on this machine's loopback, so keep --listen there.`
}

// Run serves, runs the demo, and keeps serving until the context ends.
func (c *Command) Run(ctx context.Context, t *terminal.Terminal, run service.Runner) error {
	web, err := synthweb.Start(synthweb.Demo())
	if err != nil {
		return fmt.Errorf("demo web: %w", err)
	}
	once, link := apiserver.NewOnce(demoEmail, t.Clock.Now().Add(demoLink))
	config := c.Config(web)
	config.Once = once
	ready := make(chan string, 1)
	served := make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		served <- service.Serve(serving, t, run, config,
			func(server string) { ready <- server })
	}()
	var shown error
	select {
	case server := <-ready:
		if shown = c.Show(serving, t, web, server); shown == nil {
			shown = c.welcome(serving, t, server, link)
		}
		if shown == nil {
			t.Notef("\nServing until Ctrl-C.")
		}
	case err := <-served:
		return errors.Join(err, web.Close())
	}
	if shown != nil && ctx.Err() == nil {
		stop()
		return errors.Join(shown, <-served, web.Close())
	}
	err = <-served
	if err == nil {
		t.Notef("Stopped. The data stays in %s.", c.Data)
	}
	return errors.Join(err, web.Close())
}

// welcome says where the portal is, and prints a link that signs the newcomer in. The link uses an
// account of the demo's own, whose password nobody knows.
func (c *Command) welcome(ctx context.Context, t *terminal.Terminal, server, link string) error {
	connect := commands.Connection{Data: c.Data, Server: server}
	customer, err := connect.Self(ctx, t)
	if err != nil {
		return err
	}
	client, err := connect.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Accounts(ctx, api.AccountFilter{Q: demoEmail}, 1)
	if err != nil {
		return fmt.Errorf("demo account: %w", err)
	}
	if len(list.Value.Content) == 0 {
		if err := client.CreateAccount(ctx, api.NewAccount{Email: demoEmail,
			Password: rand.Text() + rand.Text(), CustomerRef: customer,
			Admin: true}); err != nil {
			return fmt.Errorf("demo account: %w", err)
		}
	}
	t.Notef("\nPortal   %s%s\n\nThis link signs you in there, once, on this machine, for %d "+
		"minutes from the start:\n\n  %s%s", server, portalPath, int(demoLink.Minutes()), server,
		link)
	return nil
}

// Config is the configuration of `shoal serve`, with access to the demo web and a higher rate limit
// for its scraper.
func (c *Command) Config(web *synthweb.Web) service.Config {
	return service.Config{
		Data: c.Data, Listen: c.Listen, Roles: identity.Roles(), SelfKey: true,
		Cluster:     service.ClusterConfig{Capacity: 1},
		Backups:     service.BackupFlags{Every: 24 * time.Hour, Keep: 7},
		Chromium:    service.NoChromium,
		EgressAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Origins:     map[string]string{web.Pattern(): web.Addr()},
		HostRate:    1, HostConnections: 2, MaxHostRate: DemoRate,
		MaxHostConnections: demoConnections,
	}
}

// Show runs the demo and prints its output.
func (c *Command) Show(ctx context.Context, t *terminal.Terminal, web *synthweb.Web,
	server string) error {
	connect := commands.Connection{Data: c.Data, Server: server}
	client, err := connect.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	t.Notef("Serving %s, data in %s.", server, c.Data)
	group, job, err := c.launchRun(ctx, t, client, &connect, web, DemoPages)
	if err != nil {
		return err
	}
	followed := commands.Follow(ctx, t, client, job, DemoPages)
	var ended *terminal.ExitError
	if followed != nil && (ctx.Err() != nil || !errors.As(followed, &ended)) {
		return followed
	}
	if err := c.results(ctx, t, client, job); err != nil {
		return err
	}
	return c.invite(t, &connect, server, group, job)
}

// launchRun launches a run of the demo web's first pages, and prepares all that it needs.
func (c *Command) launchRun(ctx context.Context, t *terminal.Terminal, client *api.Client,
	connect *commands.Connection,
	web *synthweb.Web, pages int) (group api.Group, job string, err error) {
	group, template, err := ensureTemplate(ctx, client, web)
	if err != nil {
		return group, "", err
	}
	if err := c.greet(ctx, t, client, connect, group); err != nil {
		return group, "", err
	}
	job, err = c.launch(ctx, t, client, web, group, template, pages)
	return group, job, err
}

// again runs the demo's list once more.
func (c *Command) again(ctx context.Context, t *terminal.Terminal, web *synthweb.Web,
	connect commands.Connection, pages int) error {
	client, err := connect.Client(t)
	if err != nil {
		return err
	}
	defer client.Close()
	_, job, err := c.launchRun(ctx, t, client, &connect, web, pages)
	if err != nil {
		return err
	}
	return commands.Follow(ctx, t, client, job, int64(pages))
}

// greet reports what an earlier demo left, and ensures that the wallet can pay for this one.
func (c *Command) greet(ctx context.Context, t *terminal.Terminal, client *api.Client,
	connect *commands.Connection,
	group api.Group) error {
	history, err := client.Jobs(ctx, api.JobFilter{}, 0, 1)
	if err != nil {
		return err
	}
	read, err := client.Wallet(ctx)
	if err != nil {
		return err
	}
	wallet := read.Value
	if runs := history.Value.TotalElements; runs > 0 {
		rows, err := client.GroupRows(ctx, group.ID)
		if err != nil {
			return err
		}
		t.Notef("Found from earlier: %s, %s in group %q, balance %s.", terminal.Plural(runs, "run"),
			terminal.Plural(rows, "row"),
			demoGroup, terminal.Euros(wallet.BalanceMicros))
	}
	if wallet.BalanceMicros >= demoNeeds {
		return nil
	}
	customer, err := connect.Self(ctx, t)
	if err != nil {
		return err
	}
	if _, err := commands.Adjust(ctx, t, connect, customer, demoCredit, "demo credit"); err != nil {
		return fmt.Errorf("demo credit: %w", err)
	}
	t.Notef("The wallet got a demo credit of %s.", terminal.Euros(demoCredit))
	return nil
}

// ensureTemplate finds or makes the scraper whose fields and pace the demo's runs use, and its
// group. If another group has that name, it belongs to the user.
func ensureTemplate(ctx context.Context, client *api.Client, web *synthweb.Web) (group api.Group,
	template string, err error) {
	found, err := client.Scrapers(ctx, api.ScraperFilter{Q: demoTemplate})
	if err != nil {
		return group, "", err
	}
	for _, scraper := range found {
		if scraper.Name == demoTemplate {
			return api.Group{ID: scraper.GroupRef, Name: demoGroup}, scraper.ID, nil
		}
	}
	group, err = client.PutGroup(ctx, api.Group{Name: demoGroup, StartType: "MANUAL"})
	if err != nil {
		return group, "", fmt.Errorf("demo group: %w", err)
	}
	scraper := api.Scraper{GroupRef: group.ID, Scraper: model.Scraper{
		Name: demoTemplate, Type: model.SingleProduct,
		SourceConfig: model.SourceConfig{URL: "http://" + web.Hosts()[0] + "/"},
		ItemsConfig:  synthweb.ProductFields(),
		Config: &model.ScraperConfig{
			Politeness: &model.Politeness{RequestsPerSecond: DemoRate,
				Connections: demoConnections},
		},
	}}
	saved, err := client.PutScraper(ctx, scraper)
	if err != nil {
		return group, "", fmt.Errorf("demo scraper: %w", err)
	}
	return group, saved.Value.ID, nil
}

func (c *Command) launch(ctx context.Context, t *terminal.Terminal, client *api.Client,
	web *synthweb.Web, group api.Group,
	template string, pages int) (string, error) {
	var list strings.Builder
	for address := range web.URLs(pages) {
		list.WriteString(address + "\n")
	}
	name := commands.ListName("demo", t.Clock.Now().UTC().Format("2006-01-02 15:04:05.000"))
	launched, err := client.RunList(ctx, url.Values{
		"groupId": {group.ID}, "name": {name}, "templateScraperId": {template},
	}, func() io.Reader { return strings.NewReader(list.String()) }, int64(list.Len()),
		"text/uri-list")
	if err != nil {
		return "", fmt.Errorf("launch: %w", err)
	}
	launch := launched.Value
	t.Notef("Run %s: %s pages of %d hosts of the demo web.\n", launch.JobID,
		terminal.Count(launch.LinksQueued), len(web.Hosts()))
	return launch.JobID, nil
}

// results shows the first rows, the run's line in the ledger and the balance.
func (c *Command) results(ctx context.Context, t *terminal.Terminal, client *api.Client,
	job string) error {
	t.Notef("\nFirst rows:")
	if err := commands.WriteTable(t.Out,
		client.Rows(ctx, api.RowQuery{JobID: job, Limit: demoRows})); err != nil {
		return err
	}
	entry, err := client.TransactionOf(ctx, job)
	if err != nil {
		return err
	}
	wallet, err := client.Wallet(ctx)
	if err != nil {
		return err
	}
	if entry != nil {
		t.Notef("\nLedger: %s %s  %s  (%s)", entry.Type, entry.Status,
			terminal.Euros(entry.AmountMicros), commands.Lines(entry))
	}
	t.Notef("%s", commands.Balance(wallet.Value))
	return nil
}

// invite explains how to continue.
func (c *Command) invite(t *terminal.Terminal, connect *commands.Connection, server string,
	group api.Group, job string) error {
	key, err := datadir.ReadLine(connect.Data, datadir.KeyFile)
	if err != nil {
		return err
	}
	items, err := json.Marshal([]model.Field{{Name: "title", Selector: "h1", Kind: model.Text}})
	if err != nil {
		return err
	}
	data := ""
	if c.Data != "./data" {
		data = " --data " + c.Data
	}
	name := commands.ListName("my list", t.Clock.Now().UTC().Format("2006-01-02 15:04:05"))
	query := url.Values{"groupId": {group.ID}, "name": {name}, "itemsConfig": {string(items)}}
	t.Notef(`
API      %[1]s
API key  %[2]s   (in %[3]s)

Your own list, one address a line:

  printf '%%s\n' https://example.com/ https://example.org/ > list.txt
  curl -X POST '%[1]s/api/scraper/url-list-run?%[4]s' \
    -H 'Authorization: Bearer %[2]s' -H 'Content-Type: text/uri-list' --data-binary @list.txt

or, in another terminal:

  %[5]s run%[6]s --url-file list.txt --field title=h1 --follow

The demo's rows:

  %[5]s rows%[6]s --job %[7]s --format csv > rows.csv`, server, key, filepath.Join(connect.Data, datadir.KeyFile), query.Encode(), os.Args[0], data, job)
	return nil
}
