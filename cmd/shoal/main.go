// Command shoal is the service and its command line in one binary. This package owns the wiring of roles (modules.go),
// the flags, and one file per command. It decides nothing that the API does not: apart from serve, demo and token, every
// command is a client of the API and shows what the API answers.
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
	"golang.org/x/term"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/pkg/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default is back: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	t := terminal{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, clock: clock.System{},
	}
	if columns, _, err := term.GetSize(int(os.Stderr.Fd())); err == nil && os.Getenv("TERM") != "dumb" {
		if t.columns = columns; columns == 0 {
			t.columns = usualWidth
		}
	}
	code := run(ctx, os.Args[1:], t, runServe)
	stop()
	os.Exit(code)
}

// grammar is the command line. Each command is a type in a file of its own.
type grammar struct {
	Config string `help:"File with one 'key = value' line per flag; flags and environment win over it." placeholder:"FILE"`

	Serve   serveCommand   `cmd:"" help:"Run the service: all roles in this process, on embedded defaults."`
	Run     runCommand     `cmd:"" help:"Launch a list run: read every address of a list and extract fields."`
	Jobs    jobsCommand    `cmd:"" help:"List runs, newest first."`
	Job     jobCommand     `cmd:"" help:"Show one run; follow it; list its failed links."`
	Stop    stopCommand    `cmd:"" help:"Stop a run; what it has stored stays."`
	Rows    rowsCommand    `cmd:"" help:"Read the rows of a run."`
	Wallet  walletCommand  `cmd:"" help:"Show the wallet, or adjust one as an operator."`
	Status  statusCommand  `cmd:"" help:"Show roles, Raft, shards and lag of the service."`
	Top     topCommand     `cmd:"" help:"Watch nodes, shards, lag and pace of the service, live."`
	Health  healthCommand  `cmd:"" help:"Ask a process whether it is ready."`
	Billing billingCommand `cmd:"" help:"Check the ledger against the stored pages."`
	Fetcher fetcherCommand `cmd:"" help:"Drain a fetcher."`
	Cluster clusterCommand `cmd:"" help:"Make a cluster and its nodes."`
	Bench   benchCommand   `cmd:"" help:"Measure this build on this machine."`
	Token   tokenCommand   `cmd:"" help:"Print a sign-in token of the local issuer, good for an hour."`
	Demo    demoCommand    `cmd:"" help:"Serve, and run 2,000 pages of a built-in demo web before your eyes."`
	DemoWeb demoWebCommand `cmd:"" hidden:"" help:"Serve the demo web alone."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

const description = `Shoal reads web pages, stores every row once and charges every page once.

Start a service and a first run:

  shoal demo                                  # everything, on a built-in demo web
  shoal serve --data ./data                   # the service alone

Then, in another terminal:

  shoal run --url-file list.txt --field title=h1 --field 'price=.price' --follow
  shoal rows --job JOB --format csv > rows.csv
  shoal wallet

Commands find the server and the API key in the data directory of the service (--data), or in SHOAL_SERVER and
SHOAL_KEY. Every flag is also an environment variable (SHOAL_DATA for --data) and a line of the --config file
(data = ./data); flags win over the environment, the environment over the file.

Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 the run FAILED, 4 the run was STOPPED, 5 the server cannot be reached or
refuses the credential, 130 interrupted.`

// leave is panicked with by kong's --help, which means to end the process.
type leave int

// run is the whole program but for the process around it; it returns the exit code. serve runs the roles of a process.
func run(ctx context.Context, args []string, t terminal, serve runner) (code int) {
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
		kong.Writers(t.out, t.err),
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
		t.notef("shoal: %v", err)
		return exitFailed
	}
	command, err := parser.Parse(args)
	if err != nil {
		t.notef("shoal: %v\nshoal --help and shoal COMMAND --help tell more.", err)
		return exitUsage
	}
	return exitCode(ctx, &t, command.Run())
}

// decodeRange reads a range of addresses.
func decodeRange(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("CIDR", &text); err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q: want a range such as 10.0.0.0/8, or 10.0.0.5/32 for one address", text)
	}
	target.Set(reflect.ValueOf(prefix))
	return nil
}

// describe is a flag's help text, with its default where the synopsis shows a placeholder instead.
func describe(value *kong.Value) string {
	if value.Default == "" || value.Flag == nil || value.Flag.PlaceHolder == "" {
		return value.Help
	}
	return value.Help + " Default " + strings.ReplaceAll(value.Default, ",", ", ") + "."
}

// exitCode says what went wrong, if anything, and with which code to end.
func exitCode(ctx context.Context, t *terminal, err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		if exit.text != "" {
			t.notef("shoal: %s", exit.text)
		}
		return exit.code
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		t.notef("shoal: interrupted")
		return exitInterrupted
	}
	t.notef("shoal: %v", err)
	if errors.Is(err, api.ErrUnreachable) || api.IsStatus(err, http.StatusUnauthorized, http.StatusForbidden) {
		return exitNoAccess
	}
	return exitFailed
}
