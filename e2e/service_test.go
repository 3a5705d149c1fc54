package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/testkit/process"
	"shoal.dev/shoal/pkg/testkit/recount"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

// What the product promises.
const (
	plainPrice  = 150
	freeGrant   = 5
	stopLimit   = 10 * time.Second
	plenty      = 1_000_000_000 // micro-cents
	patience    = 3 * time.Minute
	readyWithin = time.Minute
)

// service is one data directory and the processes that serve it, one after the other.
type service struct {
	t    *testing.T
	web  *synthweb.Web
	data string
	args []string
	p    *process.Process
	client
	deaths []time.Time
}

// within is a context for everything that a test waits for.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func newWeb(t *testing.T, cfg synthweb.Config) *synthweb.Web {
	t.Helper()
	web, err := synthweb.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	})
	return web
}

// fast is what a web on the loopback may be asked.
var fast = []string{"--host-rate", "1000", "--max-host-rate", "1000",
	"--host-connections", "4", "--max-host-connections", "4"}

// nextLink follows the synthetic web's chains.
var nextLink = model.Pagination{Type: model.NextLink, Selector: synthweb.NextSelector}

// newService starts the binary on a fresh directory, with the web as the only place that it reaches.
func newService(t *testing.T, web *synthweb.Web, args ...string) *service {
	t.Helper()
	s := &service{t: t, web: web, data: t.TempDir()}
	s.args = append([]string{"--no-rate-limits", "--egress-allow", "127.0.0.0/8",
		"--egress-origin", web.Pattern() + "=" + web.Addr()}, args...)
	s.start()
	return s
}

// launch starts a process without waiting for it.
func (s *service) launch(env ...string) *process.Process {
	s.t.Helper()
	p, err := process.Start(process.Config{Binary: binary(s.t), Data: s.data, Args: s.args, Env: env})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		p.Kill()
		if strings.Contains(p.Said(), "DATA RACE") { // of -race-binary, also in a process that was killed
			s.t.Errorf("the process has a data race:\n%s", p.Said())
		}
		if s.t.Failed() {
			logged, _ := os.ReadFile(filepath.Join(s.data, "shoal.log")) // it may not have come so far
			s.t.Logf("the process said:\n%s\nand logged:\n%s", p.Said(), logged[max(0, len(logged)-8<<10):])
		}
	})
	s.p = p
	return p
}

// start starts a process and waits until it serves.
func (s *service) start(env ...string) {
	s.t.Helper()
	if err := s.launch(env...).Ready(within(s.t, readyWithin)); err != nil {
		s.t.Fatal(err)
	}
	s.client = client{server: s.p.Server(), token: s.p.Key()}
}

// kill ends the process as a power cut would.
func (s *service) kill() {
	s.p.Kill()
	s.deaths = append(s.deaths, s.p.Died())
}

// stopCleanly ends the process as an operator would.
func (s *service) stopCleanly() {
	s.t.Helper()
	if _, err := s.p.Stop(stopLimit); err != nil {
		s.t.Fatal(err)
	}
}

// admin calls with an administrator's rights.
func (s *service) admin() client {
	s.t.Helper()
	return s.signIn("--admin")
}

// customer calls as another customer, who comes into being with the first call.
func (s *service) customer(ref string) client {
	s.t.Helper()
	return s.signIn("--customer", ref)
}

func (s *service) signIn(args ...string) client {
	s.t.Helper()
	token, err := s.p.Command(s.t.Context(), append([]string{"token"}, args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return client{server: s.p.Server(), token: token}
}

// fill gives the customer money.
func (s *service) fill(who client, micros int64) {
	s.t.Helper()
	ref := must(who.whoami(s.t.Context()))(s.t)
	if err := s.admin().adjust(s.t.Context(), ref, micros); err != nil {
		s.t.Fatal(err)
	}
}

// must makes a test end with an error: must(call())(t).
func must[V any](value V, err error) func(t *testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// order is a list run to be made.
type order struct {
	who        client
	urls       []string
	kind       model.ScraperType
	fields     []model.Field
	pagination model.Pagination
	maxCharge  int64 // 0: none
}

// productOrder reads products.
func productOrder(who client, urls []string) order {
	return order{who: who, urls: urls, kind: model.SingleProduct, fields: synthweb.ProductFields()}
}

// listingOrder reads chains of listings.
func listingOrder(who client, urls []string, pagination model.Pagination) order {
	return order{who: who, urls: urls, kind: model.MultipleProducts, fields: synthweb.ItemFields(), pagination: pagination}
}

// query makes the group, and the template that holds what a list run cannot say.
func (o order) query(ctx context.Context) (url.Values, error) {
	name := "run " + newKey()
	group, err := o.who.putGroup(ctx, name)
	if err != nil {
		return nil, err
	}
	return o.listQuery(ctx, o.who, group, name)
}

func (o order) listQuery(ctx context.Context, who client, group, name string) (url.Values, error) {
	query := url.Values{"groupId": {group}, "name": {name}}
	if o.maxCharge > 0 {
		query.Set("maxChargeMicros", fmt.Sprint(o.maxCharge))
	}
	if o.pagination.Type == "" {
		fields, err := json.Marshal(o.fields)
		query.Set("itemsConfig", string(fields))
		query.Set("type", string(o.kind))
		return query, err
	}
	template := scraper{GroupRef: group, Scraper: model.Scraper{Name: "template of " + name, Type: o.kind,
		ItemsConfig: o.fields, SourceConfig: model.SourceConfig{URL: "http://template.example/", Pagination: &o.pagination}}}
	id, err := who.putScraper(ctx, template)
	query.Set("templateScraperId", id)
	return query, err
}

// launch makes the run.
func (o order) launch(t *testing.T) launched {
	t.Helper()
	query := must(o.query(t.Context()))(t)
	run := must(o.who.runList(t.Context(), query, strings.NewReader(strings.Join(o.urls, "\n"))))(t)
	if run.LinksQueued != len(o.urls) || run.DuplicatesDropped != 0 || run.Status != string(model.Pending) {
		t.Fatalf("launch of %d addresses answers %+v", len(o.urls), run)
	}
	return run
}

// expected is what the recount has to know of a run.
func (s *service) expected(o order) recount.Run {
	return recount.Run{Web: s.web, URLs: o.urls, Pagination: o.pagination, Price: plainPrice, Free: freeGrant,
		Deaths: s.deaths, MaxConnections: s.maxConnections()}
}

// maxConnections is what the process was told; after a death a host may still be busy with what it was asked before.
func (s *service) maxConnections() int {
	if i := slices.Index(s.args, "--host-connections"); i >= 0 && len(s.deaths) == 0 {
		var n int
		if _, err := fmt.Sscan(s.args[i+1], &n); err == nil {
			return n
		}
	}
	return 0
}

// records reads the page records of a job from the row store, which only one process may open.
func (s *service) records(job string) []rowstore.Record {
	s.t.Helper()
	records := must(readRecords(s.t.Context(), s.data, job))(s.t)
	return records
}

// rowsDir is where the row store lives in a data directory.
const rowsDir = "rows"

func readRecords(ctx context.Context, data, job string) ([]rowstore.Record, error) {
	id, err := ids.Parse(job)
	if err != nil {
		return nil, err
	}
	records := []rowstore.Record{}
	err = withStore(data, func(store rowstore.Store) error {
		return store.EachRecord(ctx, id, func(r rowstore.Record) error {
			records = append(records, r)
			return nil
		})
	})
	return records, err
}

// storedLists are the link lists in the row store.
func storedLists(ctx context.Context, data string) (lists []rowstore.ListInfo, err error) {
	err = withStore(data, func(store rowstore.Store) error {
		lists, err = store.AllLists(ctx)
		return err
	})
	return lists, err
}

func withStore(data string, use func(rowstore.Store) error) error {
	store, err := sqlite.Open(sqlite.Config{Dir: filepath.Join(data, rowsDir)})
	if err != nil {
		return err
	}
	return errors.Join(use(store), store.Close())
}

// check makes the recount of a run that has ended.
func check(t *testing.T, run recount.Run, reported recount.Reported) recount.Summary {
	t.Helper()
	sum, err := recount.Check(run, reported)
	if err != nil {
		t.Error(err)
	}
	return sum
}

// checkWallet compares a customer's wallet with the ledger.
func checkWallet(t *testing.T, who client) {
	t.Helper()
	wallet, ledger := must(who.wallet(t.Context()))(t), must(who.ledger(t.Context()))(t)
	if err := recount.CheckWallet(wallet, ledger); err != nil {
		t.Error(err)
	}
}

// checkBooks asks the product for its own recount.
func (s *service) checkBooks() {
	s.t.Helper()
	runs, differ, err := s.admin().recountOfProduct(s.t.Context())
	if err != nil || runs == 0 || differ > 0 {
		s.t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
	}
}

// lines reads addresses one a line without holding them all.
func lines(web *synthweb.Web, n int) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		for address := range web.URLs(n) {
			if _, err := io.WriteString(writer, address+"\n"); err != nil {
				return // who reads has left
			}
		}
		_ = writer.Close() // of a pipe it never fails
	}()
	return reader
}
