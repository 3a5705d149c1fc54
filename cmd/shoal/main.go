// Command shoal is the service and its command line in one binary. This package is the grammar:
// which commands and flags there are, and which exit code a command gives. What a command does is
// in packages under internal.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/willabides/kongplete"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/authority"
	"shoal.dev/shoal/cmd/shoal/internal/bench"
	"shoal.dev/shoal/cmd/shoal/internal/commands"
	"shoal.dev/shoal/cmd/shoal/internal/configfile"
	"shoal.dev/shoal/cmd/shoal/internal/demo"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal restores the default: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], terminal.OfProcess(), service.Run)
	stop()
	os.Exit(code)
}

// grammar is the command line.
type grammar struct {
	Config      string      `help:"File with one 'key = value' line per flag; flags and environment override it." placeholder:"FILE"`
	ShowVersion versionFlag `name:"version" env:"-" help:"Print the version."`

	Serve     service.Command    `cmd:"" help:"Run the service: by default all roles and embedded stores in one process."`
	Scrape    commands.Scrape    `cmd:"" help:"Turn a page, or a list of addresses, into a file of rows."`
	Detect    commands.Detect    `cmd:"" help:"Propose ways to read rows from a page."`
	Preview   commands.Preview   `cmd:"" help:"Show the rows that a page gives."`
	Scraper   commands.Scrapers  `cmd:"" help:"List, read, save, copy and delete scrapers."`
	Group     commands.Groups    `cmd:"" help:"Launch or stop all scrapers of a group, or set when they start."`
	Run       commands.Run       `cmd:"" help:"Launch a list run: read every address of a list and extract fields."`
	Estimate  commands.Estimate  `cmd:"" help:"Estimate what a run of a scraper will cost."`
	Jobs      commands.Jobs      `cmd:"" help:"List runs, newest first."`
	Job       commands.Job       `cmd:"" help:"Show one run; follow it; list its failed links."`
	Errors    commands.Errors    `cmd:"" help:"Summarize why links of a run failed, and what to do about it."`
	ReExtract commands.ReExtract `cmd:"" name:"re-extract" help:"Extract rows again from the kept pages of a run, without fetching and free of charge."`
	Requeue   commands.Requeue   `cmd:"" help:"Run the failed links of a run again, as an operator."`
	Stop      commands.Stop      `cmd:"" help:"Stop a run; what it has stored stays."`
	Rows      commands.Rows      `cmd:"" help:"Read the rows of a run, a scraper or a group."`
	Diff      commands.Diff      `cmd:"" help:"Compare the rows of two runs of a scraper."`
	Profile   commands.Profile   `cmd:"" help:"Profile the fields of a run's rows, and show what is odd about them."`
	Wallet    commands.Wallet    `cmd:"" help:"Show the wallet, or adjust one as an operator."`
	Status    commands.Status    `cmd:"" help:"Show roles, Raft, shards and lag of the service."`
	Top       commands.Top       `cmd:"" help:"Watch nodes, shards, lag and pace of the service, live."`
	Work      commands.Work      `cmd:"" help:"List open background work, stuck items first."`
	Health    commands.Health    `cmd:"" help:"Check whether a process is ready."`
	Billing   commands.Billing   `cmd:"" help:"Check the ledger against the stored pages."`
	Mcp       commands.MCP       `cmd:"" help:"Serve an agent's client over standard input and output."`
	Fetcher   commands.Fetcher   `cmd:"" help:"Drain a fetcher."`
	Cluster   clusterCommand     `cmd:"" help:"Create and operate a cluster."`
	Bench     bench.Command      `cmd:"" help:"Measure this build on this machine."`
	Audit     commands.Audit     `cmd:"" help:"List, export and verify the audit trail."`
	Admin     commands.Admin     `cmd:"" help:"Create, list, disable and remove accounts that sign in."`
	Token     authority.Token    `cmd:"" help:"Print a sign-in token of the local issuer, valid for an hour."`
	Demo      demo.Command       `cmd:"" help:"Run the service, and watch it read 2,000 pages of a built-in demo web."`
	DemoWeb   demo.Web           `cmd:"" hidden:"" help:"Serve the demo web alone."`
	Version   versionCommand     `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print a script with which a shell completes commands and flags."`
	Man        manCommand        `cmd:"" help:"Print the manual page."`
}

// clusterCommand has the operator's commands for a whole cluster.
type clusterCommand struct {
	Init authority.Init `cmd:"" help:"Create the certificate authority of a new cluster."`
	Cert authority.Cert `cmd:"" help:"Issue the identity of a node."`
	Demo demo.Cluster   `cmd:"" help:"Start a whole cluster on this machine, and try to break it."`

	Nodes   commands.Nodes   `cmd:"" help:"Show the nodes, their state and what they carry."`
	Remove  commands.Remove  `cmd:"" help:"Take a node that is gone for good out of the cluster."`
	Backup  commands.Backup  `cmd:"" help:"Save the cluster's state to a file, and a single process's rows to another."`
	Backups commands.Backups `cmd:"" help:"List the backups that the cluster took automatically."`
	Restore commands.Restore `cmd:"" help:"Replace the cluster's state with a backup."`

	RestoreRows service.RestoreRows `cmd:"" help:"Put a single process's rows into an empty data directory."`
}

const description = `Shoal reads web pages, stores every row once and charges every page once.

Start a service and a first run:

  shoal demo                                  # everything, on a built-in demo web
  shoal serve --data ./data                   # the service alone

Then, in another terminal:

  shoal scrape https://shop.example/lamps -o lamps.csv      # finds out what to read
  shoal run --url-file list.txt --field title=h1 --field 'price=.price' --follow
  shoal rows --job JOB --format csv > rows.csv
  shoal wallet

Commands find the server and the API key in the data directory of the service (--data), or in SHOAL_SERVER and
SHOAL_KEY. Every flag is also an environment variable (SHOAL_DATA for --data) and a line of the --config file
(data = ./data); flags override the environment, which overrides the file.

Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 the run FAILED, 4 the run was STOPPED, 5 the server cannot be reached or
refuses the credential, 6 to 9 what 'shoal audit verify' found, 10 'shoal billing reconcile' found a difference, 130
interrupted.`

// BeforeResolve refuses secrets in the given flags. If a config file is named, it reads the file,
// whose lines replace missing flags.
func (g *grammar) BeforeResolve(ctx *kong.Context) error {
	if err := service.CheckSecrets(ctx); err != nil {
		return err
	}
	for _, flag := range ctx.Model.Flags {
		if path, ok := ctx.FlagValue(flag).(string); ok && flag.Name == "config" && path != "" {
			file, err := configfile.Read(path)
			if err != nil {
				return err
			}
			if err := file.Validate(ctx.Model); err != nil {
				return err
			}
			ctx.AddResolver(file)
		}
	}
	return nil
}

// leave is the panic value for kong's --help, which wants to end the process.
type leave int

// run is the whole program without the process around it; it returns the exit code. serve runs the
// roles of a process.
func run(ctx context.Context, args []string, t terminal.Terminal, serve service.Runner) (code int) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case leave:
			code = int(reason)
		default:
			panic(reason)
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	parser, err := kong.New(&grammar{},
		kong.Name("shoal"), kong.Description(description),
		kong.Writers(t.Out, t.Err),
		kong.Exit(func(code int) { panic(leave(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.ValueFormatter(describe),
		kong.WithHyphenPrefixedParameters(true), // --micros -5000
		kong.DefaultEnvars("SHOAL"),
		kong.TypeMapper(reflect.TypeFor[netip.Prefix](), kong.MapperFunc(decodeRange)),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&t, serve),
	)
	if err != nil {
		t.Notef("shoal: %v", err)
		return terminal.ExitFailed
	}
	kongplete.Complete(parser) // answers a shell's request for completion, and exits
	tellMisspelt(&t, parser.Model, os.Environ())
	command, err := parser.Parse(args)
	if err != nil {
		t.Notef("%s: %v\n%[1]s --help tells more.", misused(err), err)
		return terminal.ExitUsage
	}
	return exitCode(ctx, &t, command.Run())
}

// misused returns the command that was called wrongly, as far as it is known.
func misused(err error) string {
	var parsing *kong.ParseError
	if errors.As(err, &parsing) && parsing.Context != nil {
		if command := parsing.Context.Selected(); command != nil {
			return command.FullPath()
		}
	}
	return "shoal"
}

// decodeRange reads a range of addresses.
func decodeRange(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("CIDR", &text); err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q: want a range such as 10.0.0.0/8, or 10.0.0.5/32 for one address",
			text)
	}
	target.Set(reflect.ValueOf(prefix))
	return nil
}

// describe is a flag's help text, with the default if the synopsis shows a placeholder instead.
func describe(value *kong.Value) string {
	if value.Default == "" || value.Flag == nil || value.Flag.PlaceHolder == "" {
		return value.Help
	}
	return value.Help + " Default " + strings.ReplaceAll(value.Default, ",", ", ") + "."
}

// exitCode reports an error, if any, and returns the exit code.
func exitCode(ctx context.Context, t *terminal.Terminal, err error) int {
	var exit *terminal.ExitError
	switch {
	case err == nil:
		return terminal.ExitOK
	case errors.As(err, &exit):
		if exit.Text != "" {
			t.Notef("shoal: %s", exit.Text)
		}
		return exit.Code
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		t.Notef("shoal: interrupted")
		return terminal.ExitInterrupted
	}
	t.Notef("shoal: %v", err)
	if errors.Is(err, api.ErrUnreachable) ||
		api.IsStatus(err, http.StatusUnauthorized, http.StatusForbidden) {
		return terminal.ExitNoAccess
	}
	return terminal.ExitFailed
}
