package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// Names of the contenders.
const (
	rawFasthttp     = "fasthttp"
	rawNetHTTP      = "net/http"
	fasthttpGoquery = "fasthttp+goquery"
	egressExtract   = "egress+extract"
	fetcherAlone    = "fetcher"
	wholeLoop       = "whole-loop"
	loopBefore      = "whole-loop-before"
)

// contender is one way of reading the pages.
type contender struct {
	name  string
	about string
	// times is how often it reads the measured pages, so that its processor time is measurable.
	times int
	// part makes a slow contender read only every part-th of the measured pages; 0 and 1 mean all.
	part int
	// nil for a job, which is its own program
	start func(ctx context.Context, t task) (crawler, error)
}

func contenders() []contender {
	return append([]contender{
		{name: rawFasthttp, about: "fasthttp's client: the bytes, nothing else", times: 5,
			start: startFasthttp},
		{name: rawNetHTTP, about: "Go's own client: the bytes, nothing else", times: 5,
			start: startNetHTTP},
		{name: fasthttpGoquery, about: "fasthttp's client, goquery with compiled selectors",
			times: 1, start: startGoquery},
		{name: egressExtract, about: "pkg/egress and pkg/extract in a loop", times: 1,
			start: startEgress},
		{name: fetcherAlone, about: "the fetcher role: task records in, page records out", times: 1,
			start: startFetcher},
		{name: wholeLoop,
			about: "`shoal serve`: a list run through the API, from launch to its end", times: 1,
			start: startLoop},
		{name: loopBefore, about: "the same by the binary that -before names", times: 1,
			start: startLoop},
	}, jobs()...)
}

// ours says whether a contender is built from the product.
func ours(name string) bool {
	return name == egressExtract || name == fetcherAlone || name == wholeLoop
}

// crawler is a contender at work.
type crawler interface {
	// crawl returns once all addresses are read.
	crawl(ctx context.Context, addresses []string) error
	// rows returns the rows of the last crawl as JSON objects; nil if the crawler makes none. Its
	// time is not measured.
	rows(ctx context.Context) ([][]byte, error)
	// usage is the resource use so far of the crawling process.
	usage() (process.Usage, error)
	close() error
}

// task is the input of a contender's process.
type task struct {
	Contender     string
	Web           string // host:port
	WarmUp, Pages int
	Concurrency   int
	Dir           string   // for its output
	Shoal         string   // the product's binary
	Peers         string   // directory of the jobs' programs
	Profile       string   // file for its CPU profile, "" for none
	Absent        bool     // one more field, which the page does not have
	Serve         []string // additional flags of the service
}

func (t *task) recipe() model.Recipe {
	return model.Recipe{Type: model.SingleProduct, Fields: fields(t.Absent)}
}

// addresses is how many addresses the web needs.
func (t *task) addresses() int { return t.WarmUp + t.Pages }

// sample is the result of one contender in one round.
type sample struct {
	Pages  int           `json:"pages"`
	CPU    time.Duration `json:"cpuNanos"`
	Wall   time.Duration `json:"wallNanos"`
	RSS    int64         `json:"peakRSSBytes"`
	Rows   string        `json:"rows"` // fingerprint, "" if it makes no rows
	WebCPU time.Duration `json:"webCPUNanos"`
}

func (s sample) perCPUSecond() float64 { return float64(s.Pages) / s.CPU.Seconds() }
func (s sample) perSecond() float64    { return float64(s.Pages) / s.Wall.Seconds() }

// startContender runs a contender in its own process.
func startContender(ctx context.Context, t task) (sample, error) {
	var s sample
	text, err := json.Marshal(t)
	if err != nil {
		return s, fmt.Errorf("encode task: %w", err)
	}
	command, err := ourselves(ctx, contenderMode, string(text))
	if err != nil {
		return s, err
	}
	out, err := command.Output()
	if err != nil {
		return s, fmt.Errorf("its process: %w", err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("its answer %q: %w", out, err)
	}
	return s, nil
}

// runContender is the main function of a contender's process.
func runContender(ctx context.Context, text string) (err error) {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("%s: %w", contenderMode, err)
	}
	all := contenders()
	at := slices.IndexFunc(all, func(c contender) bool { return c.name == t.Contender })
	if at < 0 {
		return fmt.Errorf("%s: no contender %q", contenderMode, t.Contender)
	}
	web, err := synthweb.New(webConfig(t.addresses()))
	if err != nil {
		return err
	}
	addresses := slices.Collect(web.URLs(t.addresses()))
	c, err := all[at].start(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.crawl(ctx, addresses[:t.WarmUp]); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	s, err := span(ctx, t, c, slices.Repeat(addresses[t.WarmUp:], all[at].times))
	if err != nil {
		return err
	}
	rows, err := c.rows(ctx)
	if err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	if rows != nil {
		if s.Rows, err = checkRows(web, rows, addresses[t.WarmUp:]); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// checkRows requires the rows to be exactly the web's truth for the addresses.
func checkRows(web *synthweb.Web, rows [][]byte, addresses []string) (string, error) {
	got, err := fingerprint(rows)
	if err != nil {
		return "", err
	}
	want, err := expectedRows(web, addresses)
	if err == nil && got != want {
		err = fmt.Errorf("its rows are %s, the truth is %s; one of them: %s", got, want, rows[0])
	}
	return got, err
}

// span measures one crawl.
func span(ctx context.Context, t task, c crawler, addresses []string) (sample, error) {
	s := sample{Pages: len(addresses)}
	// The whole loop is its own process, and profiles itself.
	if t.Profile != "" && t.Contender != wholeLoop {
		f, err := os.Create(t.Profile)
		if err != nil {
			return s, fmt.Errorf("profile: %w", err)
		}
		defer func() { _ = f.Close() }() // an incomplete profile shows when it is read
		if err := pprof.StartCPUProfile(f); err != nil {
			return s, fmt.Errorf("profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	before, err := c.usage()
	if err != nil {
		return s, err
	}
	started := time.Now()
	if err := c.crawl(ctx, addresses); err != nil {
		return s, err
	}
	s.Wall = time.Since(started)
	after, err := c.usage()
	s.CPU, s.RSS = after.CPU-before.CPU, after.PeakBytes
	return s, err
}

// fanOut calls work for each address, n at a time, until one call fails.
func fanOut(ctx context.Context, n int, addresses []string,
	work func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(addresses) {
					return
				}
				if err := work(ctx, i); err != nil {
					cancel(fmt.Errorf("%s: %w", addresses[i], err))
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// quote returns the end of a process's output.
func quote(output []byte) string {
	return string(
		bytes.TrimSpace(output[max(0, len(output)-2000):]))
}
