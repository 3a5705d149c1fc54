package measure

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// Fetch measures the HTTP client alone.
type Fetch struct {
	Pages       int `help:"Pages of each case." default:"40000"`
	Concurrency int `help:"Most requests under way." default:"64"`
}

// Help returns the help text.
func (*Fetch) Help() string {
	return `Shoal's HTTP client reads pages of a synthetic web in another process, over kept connections to 64 hosts, and does nothing
with them. CPU time is the client's. The report also shows how much of the machine the web took.

Example: shoal bench fetch --pages 100000`
}

// exchangeTime bounds one exchange.
const exchangeTime = 30 * time.Second

// Measure measures all cases.
func (m *Fetch) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]int{"pages": m.Pages, "concurrency": m.Concurrency}); err != nil {
		return err
	}
	table := report.table(fmt.Sprintf("The client alone, %d requests under way:", m.Concurrency),
		"case", "pages/s",
		"pages per CPU-second", "CPU a page, µs", "MB/s", "web, cores")
	products := func(size int) synthweb.Config {
		return synthweb.Config{Hosts: page.Hosts, PagesPerHost: m.Pages/page.Hosts + 1,
			PageBytes: []int{size}, LogLimit: 1}
	}
	gzip, brotli, secure := products(28_000), products(28_000), page.Web(m.Pages)
	gzip.Gzip, brotli.Brotli, secure.TLS = true, true, true
	for _, c := range []struct {
		name   string
		config synthweb.Config
		pages  int
	}{
		{"the page, 28 KB", page.Web(m.Pages), m.Pages},
		{"the page, 28 KB, TLS", secure, m.Pages},
		{"10 KB", products(10_000), m.Pages},
		{"100 KB", products(100_000), m.Pages/2 + 1},
		{"300 KB", products(300_000), m.Pages/5 + 1},
		{"28 KB, gzip", gzip, m.Pages/4 + 1},
		{"28 KB, br", brotli, m.Pages/4 + 1},
	} {
		on.Say("fetch: %s", c.name)
		if err := m.measure(ctx, on, c.name, c.config, c.pages, table); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (m *Fetch) measure(ctx context.Context, on *Bench, name string, config synthweb.Config,
	pages int,
	table *Table) (err error) {
	w, err := on.startWeb(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	addresses := slices.Collect(w.URLs(pages))
	reader, err := newReader(w, nil)
	if err != nil {
		return err
	}
	defer reader.client.Close()
	if _, err := reader.read(ctx, m.Concurrency,
		addresses[:min(len(addresses), 2000)]); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	if err := w.markSpan(); err != nil {
		return err
	}
	used, err := reader.read(ctx, m.Concurrency, addresses)
	if err != nil {
		return err
	}
	share, err := w.share()
	n := float64(len(addresses))
	table.add(name, n/used.wall.Seconds(), n/used.cpu.Seconds(), micros(used.cpu)/n,
		float64(used.bytes)/1e6/used.wall.Seconds(), share)
	return err
}

// reader is the product's client in a loop, with or without extraction. It is the minimum that the
// fetcher is compared with, which adds politeness and records.
type reader struct {
	client    *egress.Client
	extractor *extract.Extractor // nil: pages are read and dropped
}

// newReader makes a reader for the web. recipe nil: no extraction.
func newReader(w *web, recipe *model.Recipe) (*reader, error) {
	config := egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Origins: map[string]string{w.Pattern(): w.place}}
	if w.authority != "" {
		var err error
		if config.RootCAs, err = w.roots(); err != nil {
			return nil, err
		}
	}
	r := &reader{}
	var err error
	if recipe != nil {
		if r.extractor, err = extract.Compile(*recipe); err != nil {
			return nil, err
		}
	}
	r.client, err = egress.New(config)
	return r, err
}

// reading is the cost of reading some pages.
type reading struct {
	cpu, wall time.Duration // cpu: of this process
	bytes     int64
}

// read reads all addresses, that many at a time, until one fails.
func (r *reader) read(ctx context.Context, concurrency int, addresses []string) (reading, error) {
	return readAll(ctx, concurrency, addresses, r.one)
}

// readAll calls one for each address, that many at a time, until one fails. It sums up the bytes.
func readAll(ctx context.Context, concurrency int, addresses []string,
	one func(ctx context.Context, address string) (int, error)) (reading, error) {
	var total reading
	runtime.GC()
	before, err := ownCPU()
	if err != nil {
		return total, err
	}
	begun := time.Now()
	bytes, err := spread(ctx, concurrency, addresses, one)
	if err != nil {
		return total, err
	}
	total.wall, total.bytes = time.Since(begun), bytes
	after, err := ownCPU()
	total.cpu = after - before
	return total, err
}

// spread runs that many workers, which take the addresses in turn.
func spread(ctx context.Context, concurrency int, addresses []string,
	one func(ctx context.Context, address string) (int, error)) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, bytes atomic.Int64
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(addresses) {
					return
				}
				n, err := one(ctx, addresses[i])
				if err != nil {
					cancel(fmt.Errorf("%s: %w", addresses[i], err))
				}
				bytes.Add(int64(n))
			}
		})
	}
	workers.Wait()
	return bytes.Load(), context.Cause(ctx)
}

// one reads a page of one row and returns its length.
func (r *reader) one(ctx context.Context, address string) (int, error) {
	return r.use(ctx, address, func(rows [][]byte) error {
		if len(rows) != 1 {
			return fmt.Errorf("%d rows", len(rows))
		}
		return nil
	})
}

// use reads a page, has its rows used while they are valid, and returns its length.
func (r *reader) use(ctx context.Context, address string, use func(rows [][]byte) error) (int,
	error) {
	answer, err := r.client.Do(ctx,
		&egress.Request{URL: address, Deadline: time.Now().Add(exchangeTime)})
	if err != nil {
		return 0, err
	}
	defer answer.Release()
	if answer.Status != 200 {
		return 0, fmt.Errorf("status %d", answer.Status)
	}
	if r.extractor == nil {
		return len(answer.Body), nil
	}
	p := extract.Page{URL: address, ContentType: answer.Header("Content-Type"), Body: answer.Body}
	result, err := r.extractor.Extract(p)
	if err == nil {
		err = use(result.Rows)
	}
	return len(answer.Body), err
}

// ownCPU is the processor time of this process so far.
func ownCPU() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("bench: processor time: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
