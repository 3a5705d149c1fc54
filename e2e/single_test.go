package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/testkit/process"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestScenarios runs the scenarios on one process; e2e/cluster runs them on many.
func TestScenarios(t *testing.T) {
	t.Parallel()
	suite.Run(t, alone{})
}

// alone is the platform of one process on embedded defaults.
type alone struct{}

func (alone) Web(t *testing.T, config synthweb.Config) *synthweb.Web { return newWeb(t, config) }

func (alone) Fetchers() int { return 1 }

func (alone) Product(t *testing.T, args []string, webs ...*synthweb.Web) suite.Product {
	s := newSingle(t, args, webs...)
	s.Up(t)
	return s
}

func newWeb(t *testing.T, config synthweb.Config) *synthweb.Web {
	t.Helper()
	web, err := synthweb.Start(config)
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

// single is one data directory and the processes that serve it, one after the other.
type single struct {
	data string
	rows string // its ClickHouse database; "": its rows are on SQLite
	args []string
	env  []string // KEY=VALUE
	p    *process.Process
}

func newSingle(t *testing.T, args []string, webs ...*synthweb.Web) *single {
	t.Helper()
	s := &single{data: t.TempDir(), args: []string{"--egress-allow", "127.0.0.0/8"}}
	if *atOnce {
		s.args = append(s.args, suite.AtOnce(0)...)
	}
	s.args = append(s.args, args...)
	for _, web := range webs {
		s.args = append(s.args, "--egress-origin", web.Pattern()+"="+web.Addr())
	}
	if *onServer != "" {
		server := suite.Must(url.Parse(*onServer))(t)
		server.Path = "/test_" + rand.Text() // its data goes with the server
		s.rows = server.String()
		s.args = append(s.args, "--clickhouse-url", s.rows)
	}
	return s
}

// launch starts a process without waiting for it.
func (s *single) launch(t *testing.T, env ...string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Config{Binary: binary(t), Data: s.data, Args: s.args,
		Env: append(slices.Clone(s.env), env...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		// with -race-binary, even in a killed process
		if strings.Contains(p.Said(), "DATA RACE") {
			t.Errorf("the process has a data race:\n%s", p.Said())
		}
		if t.Failed() {
			// the log may not exist yet
			logged, _ := os.ReadFile(filepath.Join(s.data, "shoal.log"))
			t.Logf("the process said:\n%s\nand logged:\n%s", p.Said(),
				logged[max(0, len(logged)-8<<10):])
		}
	})
	s.p = p
	return p
}

// Up starts a process and waits until it serves.
func (s *single) Up(t *testing.T) {
	t.Helper()
	if err := s.launch(t).Ready(suite.Within(t, suite.ReadyWithin)); err != nil {
		t.Fatal(err)
	}
}

// Down stops the process like an operator.
func (s *single) Down(t *testing.T) {
	t.Helper()
	took, err := s.p.Stop(suite.StopLimit)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %v", took)
}

// Self returns a client with the key that the process has written.
func (s *single) Self() suite.Client { return suite.Client{Server: s.p.Server(), Token: s.p.Key()} }

// Mint makes a token with the local issuer.
func (s *single) Mint(ctx context.Context, args ...string) (string, error) {
	return s.p.Command(ctx, append([]string{"token"}, args...)...)
}

// Command runs a command on the data directory.
func (s *single) Command(ctx context.Context, args ...string) (string, error) {
	return s.p.Command(ctx, args...)
}

// rowsDir is the row store's place in a data directory.
const rowsDir = "rows"

// Records reads the page records of a job from the row store. Only one process may open it on
// SQLite.
func (s *single) Records(ctx context.Context, job string) ([]rowstore.Record, error) {
	return recordsIn(ctx, s.withRows, job)
}

func readRecords(ctx context.Context, data, job string) ([]rowstore.Record, error) {
	return recordsIn(ctx, func(_ context.Context, use func(rowstore.Store) error) error {
		return withStore(data, use)
	}, job)
}

func recordsIn(ctx context.Context,
	with func(context.Context, func(rowstore.Store) error) error, job string) ([]rowstore.Record,
	error) {
	id, err := ids.Parse(job)
	if err != nil {
		return nil, err
	}
	records := []rowstore.Record{}
	err = with(ctx, func(store rowstore.Store) error {
		return store.EachRecord(ctx, id, func(r rowstore.Record) error {
			records = append(records, r)
			return nil
		})
	})
	return records, err
}

// withRows opens the product's row store, wherever it is.
func (s *single) withRows(ctx context.Context, use func(rowstore.Store) error) error {
	if s.rows == "" {
		return withStore(s.data, use)
	}
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: s.rows})
	if err != nil {
		return err
	}
	return errors.Join(use(store), store.Close())
}

// storePoint translates a point of SQLite to the tested row store.
func storePoint(point string) string {
	if *onServer == "" || !strings.HasPrefix(point, "rowstore.") {
		return point
	}
	return strings.Replace(point, "_commit", "_insert", 1)
}

// Lists returns the link lists in the row store.
func (s *single) Lists(ctx context.Context) (lists []rowstore.ListInfo, err error) {
	err = s.withRows(ctx, func(store rowstore.Store) error {
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

// service is a one-process product in a test, with access to its process.
type service struct {
	*suite.Service
	*single
}

// newService starts the binary on a fresh directory, with the webs as the only places that it
// reaches.
func newService(t *testing.T, web *synthweb.Web, args ...string) *service {
	t.Helper()
	s := &service{single: newSingle(t, append([]string{"--no-rate-limits"}, args...), web)}
	s.Service = &suite.Service{T: t, Product: s.single, Web: web, Args: args}
	s.start()
	return s
}

// start starts a process and waits until it serves.
func (s *service) start() {
	s.T.Helper()
	s.Restart()
}

// kill ends the process like a power cut.
func (s *service) kill() {
	s.p.Kill()
	s.Deaths = append(s.Deaths, s.p.Died())
}

// lines streams addresses, one per line.
func lines(web *synthweb.Web, n int) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		for address := range web.URLs(n) {
			if _, err := io.WriteString(writer, address+"\n"); err != nil {
				return // the reader is gone
			}
		}
		_ = writer.Close() // a pipe's Close never fails
	}()
	return reader
}
