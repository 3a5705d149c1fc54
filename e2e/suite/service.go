// Package suite owns the end-to-end scenarios and their tools: runs to make, and checks with the
// independent recount. The caller decides what it runs against (one process, a cluster): a
// Platform. It owns no process and no part of the product.
package suite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// The product's promises, and how long a test waits.
const (
	PlainPrice  = 150           // micros per page
	FreeGrant   = 5             // requests
	Plenty      = 1_000_000_000 // micros
	StopLimit   = 10 * time.Second
	Patience    = 5 * time.Minute
	ReadyWithin = time.Minute
)

// Platform is where the scenarios run.
type Platform interface {
	// Web starts a synthetic web that the product can reach.
	Web(t *testing.T, config synthweb.Config) *synthweb.Web
	// Product starts the product on empty data, with the webs as the only places that it reaches.
	Product(t *testing.T, args []string, webs ...*synthweb.Web) Product
	// Fetchers is the number of a product's fetchers.
	Fetchers() int
}

// Product is the product under test, with any number of processes.
type Product interface {
	// Self returns a client of the self-hosting customer, once it is up.
	Self() Client
	// Mint makes a sign-in token; args are the arguments of 'shoal token'.
	Mint(ctx context.Context, args ...string) (string, error)
	// Command runs a command as the self-hosting customer and returns its output.
	Command(ctx context.Context, args ...string) (string, error)
	// Down stops it cleanly; Up starts it again on the same data.
	Down(t *testing.T)
	Up(t *testing.T)
	// Records returns the page records of a job, and Lists all link lists in the row store; both
	// once it is down.
	Records(ctx context.Context, job string) ([]rowstore.Record, error)
	Lists(ctx context.Context) ([]rowstore.ListInfo, error)
}

// Service is a product in a test.
type Service struct {
	Client // the self-hosting customer's
	Product
	T    *testing.T
	Web  *synthweb.Web
	Args []string
	// Fetchers is the number of fetchers: a redirect may lead each to another's host.
	Fetchers int
	Deaths   []time.Time // of processes with work in progress
}

// Fast returns flags for the fastest pace on a test's own web.
func Fast() []string {
	return []string{"--host-rate", "1000", "--max-host-rate", "1000", "--host-connections", "4",
		"--max-host-connections", "4"}
}

// AtOnce returns flags that move history out of the state at once, except the newest keep runs and
// entries. Then every reader has to find it elsewhere.
func AtOnce(keep int) []string {
	return []string{"--archive-every", AtOnceEvery.String(), "--archive-keep", fmt.Sprint(keep)}
}

// AtOnceEvery is the interval.
const AtOnceEvery = 10 * time.Millisecond

// NewService starts the product on empty data.
func NewService(t *testing.T, on Platform, web *synthweb.Web, args ...string) *Service {
	t.Helper()
	product := on.Product(t, append([]string{"--no-rate-limits"}, args...), web)
	return &Service{T: t, Product: product, Client: product.Self(), Web: web, Args: args,
		Fetchers: on.Fetchers()}
}

// Within returns a context for waiting at most d.
func Within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Must ends a test if there is an error: Must(call())(t).
func Must[V any](value V, err error) func(t *testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Restart starts the product after Down.
func (s *Service) Restart() {
	s.T.Helper()
	s.Up(s.T)
	s.Client = s.Self()
}

// Admin returns a client with administrator's rights.
func (s *Service) Admin() Client {
	s.T.Helper()
	return s.SignIn("--admin")
}

// Metrics returns the product's metrics by name, with their labels.
func (s *Service) Metrics(ctx context.Context) (map[string]float64, error) {
	answer, err := s.Admin().Do(ctx, http.MethodGet, "/metrics", nil, "", nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return readMetrics(answer.Body)
}

func readMetrics(from io.Reader) (map[string]float64, error) {
	metrics := map[string]float64{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			metrics[name] = value
		}
	}
	return metrics, lines.Err()
}

// Archived waits until the archive has all of history that has ended.
func (s *Service) Archived(ctx context.Context) error {
	for {
		metrics, err := s.Metrics(ctx)
		if err != nil {
			return err
		}
		if age, leads := metrics["shoal_archive_age_seconds"]; leads && age == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(AtOnceEvery):
		}
	}
}

// Customer returns a client of another customer, which the first call creates.
func (s *Service) Customer(ref string) Client {
	s.T.Helper()
	return s.SignIn("--customer", ref)
}

// SignIn returns a client with a sign-in token.
func (s *Service) SignIn(args ...string) Client {
	s.T.Helper()
	who := s.Client
	who.Token = Must(s.Mint(s.T.Context(), args...))(s.T)
	return who
}

// Fill gives the customer money.
func (s *Service) Fill(who Client, micros int64) {
	s.T.Helper()
	ref := Must(who.Whoami(s.T.Context()))(s.T)
	if err := s.Admin().Adjust(s.T.Context(), ref, micros); err != nil {
		s.T.Fatal(err)
	}
}

// Order describes a list run.
type Order struct{ api.Order }

// ProductOrder returns an order that reads products.
func ProductOrder(who Client, urls []string) Order { return Order{api.ProductOrder(who, urls)} }

// ListingOrder returns an order that reads chains of listings.
func ListingOrder(who Client, urls []string, pagination model.Pagination) Order {
	return Order{api.ListingOrder(who, urls, pagination)}
}

// Launch launches the run.
func (o Order) Launch(t *testing.T) Launched {
	t.Helper()
	query := Must(o.Query(t.Context()))(t)
	run := Must(o.Who.RunList(t.Context(), query, o.Body()))(t)
	if run.LinksQueued != len(o.URLs) || run.DuplicatesDropped != 0 ||
		run.Status != string(model.Pending) {
		t.Fatalf("launch of %d addresses answers %+v", len(o.URLs), run)
	}
	return run
}

// Expected describes a run for the recount.
func (s *Service) Expected(o Order) recount.Run {
	return recount.Run{Web: s.Web, URLs: o.URLs, Pagination: o.Pagination, Price: PlainPrice,
		Free:   FreeGrant,
		Deaths: s.Deaths, MaxConnections: s.maxConnections()}
}

// maxConnections is the configured limit; 0: not checked. After a death a host may still be busy
// with earlier requests.
func (s *Service) maxConnections() int {
	if i := slices.Index(s.Args, "--host-connections"); i >= 0 && len(s.Deaths) == 0 {
		var n int
		if _, err := fmt.Sscan(s.Args[i+1], &n); err == nil {
			return n + max(s.Fetchers-1, 0)
		}
	}
	return 0
}

// Begun waits until that many pages of a run have ended.
func Begun(t *testing.T, who Client, run Launched, pages int64) {
	t.Helper()
	last := Must(who.Follow(Within(t, Patience), run.JobID,
		func(p Progress) bool { return p.TotalRequests >= pages }))(t)
	if last.State != "RUNNING" {
		t.Fatalf("the run is over before %d pages: %+v", pages, last)
	}
}

// Sealed waits until a run's entry is sealed. A stop itself waits only some seconds for what is
// out.
func Sealed(t *testing.T, who Client, job string) recount.Transaction {
	t.Helper()
	for ctx := Within(t, Patience); ; {
		if entry := Must(who.Entry(ctx, job))(t); entry.Status == "SETTLED" {
			return entry
		}
	}
}

// Check makes the recount of a run that has ended.
func Check(t *testing.T, run recount.Run, reported recount.Reported) recount.Summary {
	t.Helper()
	sum, err := recount.Check(run, reported)
	if err != nil {
		t.Error(err)
	}
	return sum
}

// CheckWallet compares a customer's wallet with the ledger.
func CheckWallet(t *testing.T, who Client) {
	t.Helper()
	wallet, ledger := Must(who.Wallet(t.Context()))(t), Must(who.Ledger(t.Context()))(t)
	if err := recount.CheckWallet(wallet, ledger); err != nil {
		t.Error(err)
	}
}

// CheckBooks asks the product for its own recount.
func (s *Service) CheckBooks() {
	s.T.Helper()
	runs, differ, err := s.Admin().RecountOfProduct(s.T.Context())
	if err != nil || runs == 0 || differ > 0 {
		s.T.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
	}
}

// WithRecords stops the product and adds the page records to a report.
func (s *Service) WithRecords(reported recount.Reported) recount.Reported {
	s.T.Helper()
	s.Down(s.T)
	reported.Records = Must(s.Records(s.T.Context(), reported.Job.ID))(s.T)
	return reported
}
