// Command bench measures how many pages one second of processor time brings. It measures the whole
// service, its fetcher alone, and peers that people would write by hand. All read the same page in
// the same run. It owns the measuring and the peers. It measures the product unchanged, without
// hooks.
//
// Every contender runs in its own fresh process, and so does the web it reads, so that costs are
// not mixed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The first argument distinguishes the processes that the bench starts from itself.
const (
	webMode         = "serve-web"
	loopbackWebMode = "serve-loopback-web"
	contenderMode   = "run-contender"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:]); {
	case err != nil && ctx.Err() != nil: // whichever process reported it first
		fmt.Fprintln(os.Stderr, "bench: interrupted")
		stop()
		os.Exit(130)
	case err != nil && !errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 {
		switch args[0] {
		case webMode:
			return serveWeb(ctx, args[1])
		case loopbackWebMode:
			return serveLoopbackWeb(ctx, args[1])
		case contenderMode:
			return runContender(ctx, args[1])
		}
	}
	if len(args) > 0 && args[0] == apiMode {
		return measureAPI(ctx, args[1:])
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	report, err := measureRounds(ctx, o)
	if err != nil {
		return err
	}
	report.Command = strings.Join(append([]string{"go run ./bench"}, args...), " ")
	fmt.Print(report.markdown())
	if o.out == "" {
		return nil
	}
	path, err := report.save(o.out)
	if err == nil {
		fmt.Println("\nWritten to", path+".md and .json")
	}
	return err
}

// options are the options of a bench run.
type options struct {
	contenders  []string
	missing     []string // jobs that are not installed
	peers       string   // directory of the jobs' programs
	before      string   // the product's binary to compare with, "" for none
	pages       int      // of each contender, per round
	warmUp      int      // pages before the measurement begins
	rounds      int
	concurrency int    // most requests in flight
	absent      bool   // one more field, which the page does not have
	profiles    string // directory of CPU profiles, "" for none
	out         string // directory of the results, "" for none
}

func parseOptions(args []string) (options, error) {
	var o options
	var only string
	quick := false
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.pages, "pages", 20_000, "pages of each contender in each round")
	flags.IntVar(&o.warmUp, "warm-up", 4_000, "pages before the measuring begins")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds; in each, the contenders take turns")
	flags.IntVar(&o.concurrency, "concurrency", 64, "requests under way, at most")
	flags.BoolVar(&o.absent, "absent", false,
		"read a sixth field, which the page does not have: whoever stops reading once all is "+
			"found cannot stop then")
	flags.StringVar(&only, "only", "", "contenders, by name with commas between; all unless told")
	flags.StringVar(&o.peers, "peers", "bench/.peers/bin",
		"directory of the peers' programs ("+installPeers+")")
	flags.StringVar(&o.before, "before", "",
		"binary of an earlier release, which takes its turns in the same rounds")
	flags.StringVar(&o.out, "out", "", "directory of the result files; none unless told")
	flags.StringVar(&o.profiles, "profile", "",
		"directory for CPU profiles of our own contenders, which the report then sums up by stage")
	flags.BoolVar(&quick, "quick", false, "few pages, one round: whether it works, not how fast")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if quick {
		o.pages, o.warmUp, o.rounds = 300, 100, 1
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %s", flags.Arg(0))
	}
	if o.pages < 1 || o.warmUp < 1 || o.rounds < 1 || o.concurrency < 1 {
		return o, errors.New("-pages, -warm-up, -rounds and -concurrency are at least 1")
	}
	return o, o.choose(only)
}

// choose selects the contenders in only, separated by commas, or all.
func (o *options) choose(only string) error {
	if only != "" {
		for name := range strings.SplitSeq(only, ",") {
			if !slices.ContainsFunc(contenders(),
				func(c contender) bool { return c.name == name }) {
				return fmt.Errorf("-only: %q names no contender", name)
			}
		}
	}
	for _, c := range contenders() {
		switch {
		case only != "" && !slices.Contains(strings.Split(only, ","), c.name):
		case c.name == loopBefore && o.before == "" && only != "":
			return fmt.Errorf("-only: %s needs -before", loopBefore)
		case c.name == loopBefore && o.before == "":
		case isJob(c.name) && !installed(o.peers, c.name):
			o.missing = append(o.missing, c.name)
		default:
			o.contenders = append(o.contenders, c.name)
		}
	}
	if only != "" && len(o.missing) > 0 {
		return fmt.Errorf("-only: not installed: %s (%s)", strings.Join(o.missing, ", "),
			installPeers)
	}
	return nil
}

// measureRounds runs all rounds.
func measureRounds(ctx context.Context, o options) (*report, error) {
	dir, err := os.MkdirTemp("", "shoal-bench")
	if err != nil {
		return nil, fmt.Errorf("a directory for the run: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers do not matter
	binary := filepath.Join(dir, "shoal")
	if slices.Contains(o.contenders, wholeLoop) {
		if err := buildShoal(ctx, binary); err != nil {
			return nil, err
		}
	}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return nil, fmt.Errorf("-out: %w", err)
		}
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return nil, fmt.Errorf("-profile: %w", err)
		}
	}
	r := newReport(ctx, o)
	for round := range o.rounds {
		for _, name := range o.contenders {
			t := task{Contender: name, Pages: o.pages, WarmUp: o.warmUp, Concurrency: o.concurrency,
				Dir: dir, Shoal: binary,
				Peers: o.peers, Absent: o.absent}
			if name == loopBefore {
				t.Shoal = o.before
			}
			if o.profiles != "" && ours(name) {
				t.Profile = filepath.Join(o.profiles, name+".prof")
			}
			s, err := measureOne(ctx, t)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", name, round+1, err)
			}
			fmt.Fprintf(os.Stderr, "round %d  %-24s %9.0f pages per CPU-second  %8.0f pages/s\n",
				round+1, name,
				s.perCPUSecond(), s.perSecond())
			r.add(name, s)
		}
	}
	return r, r.addStages(ctx, o)
}

// measureOne gives each contender its own web, so that none finds traces of another. Both are fresh
// processes.
func measureOne(ctx context.Context, t task) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	mode := webMode
	if isJob(t.Contender) {
		mode = loopbackWebMode
	}
	web, err := startWeb(ctx, mode, t.addresses())
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, web.stop()) }()
	t.Web = web.address
	if isJob(t.Contender) {
		s, err = runJob(ctx, t)
	} else {
		s, err = startContender(ctx, t)
	}
	if err != nil {
		return s, err
	}
	s.WebCPU, err = web.cpu(ctx)
	return s, err
}
