package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
)

// List measures how long the API takes to accept long lists.
type List struct {
	Addresses []int `help:"Lengths of the lists, one case each; at most 5,000,000." default:"100000,1000000,5000000"`
	Hosts     int   `help:"Number of hosts in the addresses." default:"10000"`
}

// Help returns the help text.
func (*List) Help() string {
	return `Each list is sent from a file, in one call, to a fresh 'shoal serve' on an empty directory. The time is that of the call,
which returns once the list is durable and the run is launched. Memory is the service's peak resident set up to then. No
address of the list is fetched.

Example: shoal bench list --addresses 1000000 --hosts 1000`
}

// Measure measures all lengths.
func (m *List) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]int{"hosts": m.Hosts}); err != nil {
		return err
	}
	for _, n := range m.Addresses {
		if n < 1 || n > longestList {
			return fmt.Errorf("--addresses: %w: want 1 to %s", ErrFlags,
				thousands(strconv.Itoa(longestList)))
		}
	}
	table := report.table(fmt.Sprintf("Accepting a list, addresses of %d hosts:", m.Hosts),
		"addresses", "seconds",
		"addresses/s", "CPU an address, µs", "peak memory, MB", "idle before, MB", "list, MB")
	for _, n := range m.Addresses {
		on.Say("list: %d addresses", n)
		if err := m.measure(ctx, on, n, table); err != nil {
			return fmt.Errorf("%d addresses: %w", n, err)
		}
	}
	return nil
}

func (m *List) measure(ctx context.Context, on *Bench, n int, table *Table) (err error) {
	path := filepath.Join(on.Dir, "list")
	size, err := writeList(path, n, func(i int) string {
		return fmt.Sprintf("http://host-%d.test/catalogue/products/item-%d.html", i%m.Hosts,
			i/m.Hosts)
	})
	if err != nil {
		return err
	}
	// Every host resolves to a port without a listener, and gets one request in 17 minutes.
	s, err := on.fresh(ctx, nil, nil, "--egress-origin", "*.test=127.0.0.1:9", "--host-rate",
		"0.001")
	if err != nil {
		return err
	}
	defer func() { // it has a run that nobody waits for
		s.Kill()
		err = errors.Join(err, os.RemoveAll(s.data))
	}()
	before, err := s.Usage()
	if err != nil {
		return err
	}
	took, run, err := sendList(ctx, s, path, "list")
	if err != nil {
		return err
	}
	after, err := s.Usage()
	if err != nil {
		return err
	}
	if run.LinksQueued != n {
		return fmt.Errorf("%d of %d addresses were queued", run.LinksQueued, n)
	}
	table.add(thousands(strconv.Itoa(n)), took.Seconds(), float64(n)/took.Seconds(),
		micros(after.CPU-before.CPU)/float64(n),
		float64(after.PeakBytes)/1e6, float64(before.Bytes)/1e6, float64(size)/1e6)
	return nil
}

// writeList writes addresses to a file, one a line, and returns its size.
func writeList(path string, n int, address func(i int) string) (size int64, err error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, fmt.Errorf("bench: list: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewWriterSize(file, 1<<20)
	for i := range n {
		written, err := lines.WriteString(address(i) + "\n")
		if err != nil {
			return 0, fmt.Errorf("bench: list: %w", err)
		}
		size += int64(written)
	}
	return size, lines.Flush()
}

// sendList launches a run of a list in a file and returns how long the call took.
func sendList(ctx context.Context, s *service, path, name string) (time.Duration, api.Launched,
	error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, api.Launched{}, fmt.Errorf("bench: list: %w", err)
	}
	defer func() { _ = file.Close() }() // read-only
	group, err := s.PutGroup(ctx, name)
	if err != nil {
		return 0, api.Launched{}, err
	}
	order := api.Order{Who: s.Client, Kind: model.SingleProduct, Fields: page.Fields(false)}
	query, err := order.ListQuery(ctx, s.Client, group, name)
	if err != nil {
		return 0, api.Launched{}, err
	}
	begun := time.Now()
	run, err := s.RunList(ctx, query, file)
	return time.Since(begun), run, err
}
