package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/synthweb"
)

// apiMode is the argument that measures the API instead of crawling.
const apiMode = "api"

// What the API must achieve while a crawl runs.
const (
	mostReadLatency  = 25 * time.Millisecond // of 99% of reads
	mostWriteLatency = 35 * time.Millisecond // of 99% of writes
	leastPace        = 0.8                   // of the crawl's pace without calls
	callTimeout      = time.Minute
)

// apiOptions are the options of an API measurement.
type apiOptions struct {
	reads, writes int // calls per second
	pages         int // of the crawl, with and without calls
	warmUp        int // pages before the measurement
	customers     int
	keys, copies  int // of top-ups
	concurrency   int // most requests of the crawl in flight
}

func parseAPIOptions(args []string) (apiOptions, error) {
	var o apiOptions
	quick := false
	flags := flag.NewFlagSet("bench api", flag.ContinueOnError)
	flags.IntVar(&o.reads, "reads", 2_000, "authenticated reads a second")
	flags.IntVar(&o.writes, "writes", 100, "writes a second")
	flags.IntVar(&o.pages, "pages", 100_000, "pages of the crawl; the calls last as long as it")
	flags.IntVar(&o.warmUp, "warm-up", 4_000, "pages before the measuring begins")
	flags.IntVar(&o.customers, "customers", 200, "who call, each by a token and by a key")
	flags.IntVar(&o.keys, "keys", 1_000, "top-ups, each under an idempotency key of its own")
	flags.IntVar(&o.copies, "copies", 64, "calls of each top-up, at once")
	flags.IntVar(&o.concurrency, "concurrency", 64, "requests of the crawl under way, at most")
	flags.BoolVar(&quick, "quick", false, "few of all: whether it works, not how fast")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if quick {
		o.reads, o.writes, o.pages, o.warmUp = 200, 20, 3_000, 300
		o.customers, o.keys, o.copies = 4, 20, 16
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %s", flags.Arg(0))
	}
	for _, n := range []int{o.reads, o.writes, o.pages, o.warmUp, o.customers, o.keys, o.copies,
		o.concurrency} {
		if n < 1 {
			return o, errors.New("all figures are at least 1")
		}
	}
	if o.keys > o.customers*mostOpenTopUps {
		return o, fmt.Errorf("-keys: %d customers have at most %d open top-ups", o.customers,
			o.customers*mostOpenTopUps)
	}
	return o, nil
}

// mostOpenTopUps is how many open top-ups a customer may have.
const mostOpenTopUps = 100

// measureAPI measures the API while the service crawls.
func measureAPI(ctx context.Context, args []string) (err error) {
	o, err := parseAPIOptions(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "shoal-bench")
	if err != nil {
		return fmt.Errorf("a directory for the run: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers do not matter
	t := task{Dir: dir, Shoal: filepath.Join(dir, "shoal"), Concurrency: o.concurrency,
		WarmUp: o.warmUp, Pages: 2 * o.pages}
	if err := buildShoal(ctx, t.Shoal); err != nil {
		return err
	}
	web, err := startWeb(ctx, webMode, t.addresses())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, web.stop()) }()
	t.Web = web.address
	outside, err := startOutside(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, outside.close()) }()
	if t.Serve, err = outside.flags(dir); err != nil {
		return err
	}
	crawler, err := startLoop(ctx, t)
	if err != nil {
		return err
	}
	loop := crawler.(*loopCrawler)
	defer func() { err = errors.Join(err, loop.close()) }()
	return (&apiBench{apiOptions: o, loop: loop, outside: outside}).run(ctx)
}

// apiBench is the service under load.
type apiBench struct {
	apiOptions
	loop    *loopCrawler
	outside *outside
	server  string
	tokens  []api.Client // one customer each, with OpenID Connect tokens
	callers []api.Client // the same customers, with API keys
	// calls made while the service crawls
	reading, writing *load
}

func (b *apiBench) run(ctx context.Context) error {
	at, err := os.ReadFile(filepath.Join(b.loop.data, "address"))
	if err != nil {
		return fmt.Errorf("where the service is: %w", err)
	}
	b.server = strings.TrimSpace(string(at))
	if !strings.Contains(b.server, "://") {
		b.server = "http://" + b.server
	}
	if err := b.signUp(ctx); err != nil {
		return err
	}
	if err := b.topUps(ctx); err != nil {
		return err
	}
	web, err := synthweb.New(webConfig(b.warmUp + 2*b.pages))
	if err != nil {
		return err
	}
	all := slices.Collect(web.URLs(b.warmUp + 2*b.pages))
	if err := b.loop.crawl(ctx, all[:b.warmUp]); err != nil {
		return err
	}
	began := time.Now()
	if err := b.loop.crawl(ctx, all[b.warmUp:b.warmUp+b.pages]); err != nil {
		return err
	}
	alone := time.Since(began)
	loading, end := context.WithCancel(ctx)
	callers := newCallers(b.callers)
	loads := startLoads(loading, []*load{b.readLoad(callers), b.writeLoad(callers)})
	began = time.Now()
	err = b.loop.crawl(ctx, all[b.warmUp+b.pages:])
	beside := time.Since(began)
	end()
	loads.Wait()
	if err != nil {
		return err
	}
	return b.tell(alone, beside)
}

// signUp makes the customers, each with a token and a key.
func (b *apiBench) signUp(ctx context.Context) error {
	for n := range b.customers {
		subject := fmt.Sprint("customer-", n)
		token, err := b.outside.token(subject)
		if err != nil {
			return err
		}
		who := api.Client{Server: b.server, Token: token, HTTP: apiClient()}
		if err := who.Call(ctx, "POST", "/api/customer", nil, map[string]any{
			"firstname": "Bench", "lastname": subject, "email": subject + "@bench.example",
			"agreeWithTerms": true}, nil); err != nil {
			return fmt.Errorf("sign up: %w", err)
		}
		key, err := who.MintKey(ctx, "bench", "USER")
		if err != nil {
			return fmt.Errorf("mint a key: %w", err)
		}
		if _, err := key.PutGroup(ctx, "bench"); err != nil {
			return fmt.Errorf("make a group: %w", err)
		}
		b.tokens = append(b.tokens, who)
		b.callers = append(b.callers, who, key)
	}
	return nil
}

// tell prints the figures, and fails if a limit is not met.
func (b *apiBench) tell(alone, beside time.Duration) error {
	pace := alone.Seconds() / beside.Seconds()
	fmt.Printf("crawl   %d pages: %.0f a second alone, %.0f beside the calls: %.2f of its pace "+
		"(at least %.1f)\n", b.pages, float64(b.pages)/alone.Seconds(),
		float64(b.pages)/beside.Seconds(), pace, leastPace)
	err := errors.Join(b.reading.tell(mostReadLatency), b.writing.tell(mostWriteLatency))
	if pace < leastPace {
		err = errors.Join(err, errors.New("the crawl is too slow beside the calls"))
	}
	return err
}
