// Package bench has the commands that measure this build. bench/measure decides what they measure
// and how.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/bench/measure"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/version"
)

// Command has one subcommand for each measure.
type Command struct {
	Extract  benchOf[measure.Extract]  `cmd:"" help:"Extraction of rows from pages, by engine."`
	Detect   benchOf[measure.Detect]   `cmd:"" help:"Quality of proposals for saved real pages."`
	Article  benchOf[measure.Article]  `cmd:"" help:"Quality of articles that AI_CONF reads without a language model."`
	Contacts benchOf[measure.Contacts] `cmd:"" help:"Quality of e-mail addresses read from saved real pages."`
	Match    benchOf[measure.Match]    `cmd:"" help:"Matching of rows with the products of a catalogue."`
	Fetch    benchOf[measure.Fetch]    `cmd:"" help:"The HTTP client alone."`
	Cold     benchOf[measure.Cold]     `cmd:"" help:"First contact with hosts over TLS, compared with a bare connection."`
	Loop     benchOf[measure.Loop]     `cmd:"" help:"The whole service in one process, from launch to settlement."`
	Cluster  benchOf[measure.Cluster]  `cmd:"" help:"The whole service as a local cluster on Kafka, Redis and ClickHouse."`
	API      benchOf[measure.API]      `cmd:"" name:"api" help:"Latency of API calls at a fixed rate, alone and beside a crawl."`
	List     benchOf[measure.List]     `cmd:"" help:"Accepting long lists."`
	Frontier benchOf[measure.Frontier] `cmd:"" help:"Memory of pending addresses, and the time to the first fetch after a crash."`
	Rows     benchOf[measure.Rows]     `cmd:"" help:"Ingest and filtered reads of the row stores."`
	History  benchOf[measure.History]  `cmd:"" help:"Cost of years of ended runs: memory, snapshots, restarts, reads of the history."`
	Raft     benchOf[measure.Raft]     `cmd:"" help:"Durable Raft commands per second."`
	Soak     benchOf[measure.Soak]     `cmd:"" help:"Hours of runs with kills, each run recounted."`

	ReExtract benchOf[measure.ReExtract] `cmd:"" name:"re-extract" help:"Re-extraction of kept pages, compared with the crawl that kept them."`

	Web benchWebCommand `cmd:"" hidden:"" help:"The synthetic web of a benchmark, in its own process."`
}

// Help returns the command's help text.
func (*Command) Help() string {
	return `Each benchmark starts what it needs on the loopback, in a temporary directory (TMPDIR) that it removes. The report names the
machine, the version and the command, and shows how busy the machine was before. Between machines, compare only ratios
within one run.

To compare Shoal with hand-written code and other tools, run 'make bench' in the source tree.

Examples:

  shoal bench loop --out results
  shoal bench list --addresses 1000000
  shoal bench soak --time 8h`
}

// benchFlags are the flags of every measure.
type benchFlags struct {
	Out  string `help:"Directory for the report, as JSON and as text." placeholder:"DIR" type:"path"`
	JSON bool   `help:"Print the report as JSON."`
}

// benchOf is the subcommand of one measure; the measure's fields are its flags.
type benchOf[M any] struct {
	Measured M `embed:""`
	benchFlags
}

// Help returns the measure's help text.
func (c *benchOf[M]) Help() string { return any(&c.Measured).(interface{ Help() string }).Help() }

// Run measures and reports.
func (c *benchOf[M]) Run(ctx context.Context, t *terminal.Terminal, k *kong.Context) (err error) {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if c.Out != "" { // fail before hours of measuring
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return terminal.Usagef("--out: %v", err)
		}
	}
	dir, err := os.MkdirTemp("", "shoal-bench")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	report := measure.NewReport(k.Selected().Name, version.String(),
		strings.Join(append([]string{"shoal"}, k.Args...), " "))
	on := &measure.Bench{Program: program, Dir: dir, Say: t.Notef}
	switch err := any(&c.Measured).(measure.Measure).Measure(ctx, on, report); {
	case err != nil && ctx.Err() != nil:
		// A terminal's interrupt also reaches the service and the web, maybe first.
		return ctx.Err()
	case errors.Is(err, measure.ErrFlags):
		return terminal.Usagef("%v", err)
	case err != nil:
		return err
	}
	return c.tell(t, report)
}

// tell prints the report, and saves it if asked to.
func (c *benchFlags) tell(t *terminal.Terminal, report *measure.Report) error {
	if c.JSON {
		if err := terminal.PrintJSON(t.Out, report); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(t.Out, report.Text()); err != nil {
		return err
	}
	if c.Out == "" {
		return nil
	}
	path, err := report.Save(c.Out)
	if err == nil {
		t.Notef("Written to %s.md and .json", path)
	}
	return err
}

// benchWebCommand is started by the measures.
type benchWebCommand struct{}

// Run serves a web until its input ends.
func (*benchWebCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	return measure.ServeWeb(ctx, t.In, t.Out)
}
