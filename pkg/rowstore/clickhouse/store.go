// Package clickhouse is the row store of a cluster: one ClickHouse database that any number of
// processes write and read at the same time. It owns the schema, the means that make writes exact
// without transactions, and the SQL of filters. Package rowstore defines what is stored and what it
// means.
//
// The server's own order of commits (block numbers) decides everything that two processes could see
// differently. That is which of two records of a unit came first, and the place of a row. Clocks
// only decide when a fence may go.
package clickhouse

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	lru "github.com/hashicorp/golang-lru/v2"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/intake"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

// Config says where the store is. All fields but URL may be omitted.
type Config struct {
	URL      string // http://[USER:PASSWORD@]HOST:PORT/DATABASE, or https://…
	Username string // instead of the URL's
	Password string
	Database string // instead of the URL's; created if missing
	Node     string // name of this process in the server's logs
	// RootCAs may have signed the server's certificate; nil: the system's.
	RootCAs *x509.CertPool

	Clock  clock.Clock
	Logger *slog.Logger
	// Point is called at named places, so that tests can end, stop or delay the process there.
	// Pages have "rowstore.before_insert" and "rowstore.after_insert". A seal has
	// "rowstore.after_fence", a sitemap "rowstore.before_batch", and each week that expires
	// "rowstore.before_drop_part". A site has "rowstore.site_after_part"; it and a list have
	// "rowstore.list_before_finish" and "rowstore.list_after_finish". The switch to weeks has
	// "rowstore.switch_before_drain" and "rowstore.switch_after_drain".
	Point func(name string)
}

// Bounds.
const (
	connections   = 16
	connLife      = 10 * time.Minute
	dialTimeout   = 5 * time.Second
	callTimeout   = 30 * time.Second // of a read or an insert
	removeTimeout = 10 * time.Minute // of a removal, which waits until it is done
	tries         = 3                // of a call, if the network fails
	retryPause    = 50 * time.Millisecond
	knownJobs     = 100_000
	decodedChunks = 32
	knownBegins   = 10_000
	knownScans    = 10_000
	maxScope      = 1 << 10   // bytes of the condition of a scope whose beginning is cached
	maxCached     = 1 << 20   // bytes of a decoded chunk; larger ones are not cached
	maxQuery      = 16 << 20  // bytes of a statement, with its ids and operands
	plainQuery    = 200 << 10 // bytes that the server accepts by default
)

// Store is a rowstore.Store on ClickHouse.
type Store struct {
	conn    driver.Conn
	db      string
	node    string
	clock   clock.Clock
	logger  *slog.Logger
	point   func(string)
	jobs    *lru.Cache[ids.ID, home]       // jobs known to be in the table of jobs
	chunks  *lru.Cache[chunkKey, []string] // the links of decoded chunks
	begins  *lru.Cache[string, int64]      // by a scope's condition: a place before its first row
	seen    *lru.Cache[scanKind, seen]     // what the last scan of a kind saw
	intakes *intake.Gate
	encode  record.Codec
	known   atomic.Pointer[layout]         // once rows are by weeks
	columns []clickhouse.ColumnNameAndType // of an insert of pages
	counts  struct{ batches, rows, bytes, retries, known, raced atomic.Uint64 }
}

var _ rowstore.Store = (*Store)(nil)

var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Check reports errors without asking the server. It never quotes a possible password.
func (c Config) Check() error {
	_, err := c.options()
	return err
}

// options returns the server's address and credentials. Their database has a valid name.
func (c Config) options() (*clickhouse.Options, error) {
	address, secure := c.URL, strings.HasPrefix(c.URL, "https://")
	switch {
	case !secure && !strings.HasPrefix(address, "http://"):
		return nil, errors.New("row store: the address must begin with http:// or https://")
	case !secure && c.RootCAs != nil:
		return nil,
			errors.New("row store: authorities go with an address that begins with https://")
	case secure && !strings.Contains(address, "secure="): // the driver needs both
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		address += separator + "secure=true"
	}
	options, err := clickhouse.ParseDSN(address)
	if err != nil {
		return nil, fmt.Errorf("row store: address: %w", err)
	}
	if c.Username != "" {
		options.Auth.Username, options.Auth.Password = c.Username, c.Password
	}
	if c.RootCAs != nil {
		options.TLS.RootCAs = c.RootCAs
	}
	if c.Database != "" {
		options.Auth.Database = c.Database
	}
	// not quoted: a "/" in a password puts the rest of it here
	if !isName.MatchString(options.Auth.Database) {
		return nil, errors.New("row store: the database's name is not made of at most 64 " +
			"letters, digits and _")
	}
	return options, nil
}

// Open connects to the server, and creates or migrates the database if needed. It fails promptly if
// the server cannot be reached.
func Open(ctx context.Context, config Config) (*Store, error) {
	options, err := config.options()
	if err != nil {
		return nil, err
	}
	db := options.Auth.Database
	options.Auth.Database = "" // every statement names it, since the database may not exist yet
	options.MaxOpenConns, options.MaxIdleConns, options.ConnMaxLifetime = connections, connections,
		connLife
	options.DialTimeout, options.ReadTimeout = dialTimeout, removeTimeout
	options.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	options.ClientInfo.Products = append(options.ClientInfo.Products,
		struct{ Name, Version string }{"shoal", config.Node})
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("row store: %w", err)
	}
	s := &Store{conn: conn, db: db, node: config.Node, clock: config.Clock, logger: config.Logger,
		point:   config.Point,
		intakes: intake.NewGate(), columns: insertColumns()}
	if s.clock == nil {
		s.clock = clock.System{}
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.point == nil {
		s.point = func(string) {}
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// Identity implements rowstore.Store by the UUID of a table. On a server without UUIDs it is "".
func (s *Store) Identity(ctx context.Context) (string, error) {
	found, err := read(ctx, s,
		"SELECT toString(uuid) FROM system.tables WHERE database = "+text(s.db)+
			" AND name = 'rows'",
		func(rows driver.Rows) (id string, err error) { return id, rows.Scan(&id) })
	switch {
	case err != nil:
		return "", fmt.Errorf("row store: identity: %w", err)
	case len(found) == 0 || found[0] == "00000000-0000-0000-0000-000000000000":
		return "", nil
	}
	return "clickhouse " + s.db + " " + found[0], nil
}

// Free returns how many bytes are free on the disk of the server's data. It needs no rights.
func (s *Store) Free(ctx context.Context) (bytes uint64, known bool, err error) {
	found, err := read(ctx, s, "SELECT filesystemAvailable()",
		func(rows driver.Rows) (bytes uint64, err error) { return bytes, rows.Scan(&bytes) })
	if err != nil || len(found) == 0 {
		return 0, false, fmt.Errorf("row store: free space: %w", err)
	}
	return found[0], true, nil
}

func (s *Store) prepare(ctx context.Context) (err error) {
	if s.encode, err = record.NewCodec(); err != nil {
		return fmt.Errorf("row store: %w", err)
	}
	if s.jobs, err = lru.New[ids.ID, home](knownJobs); err != nil {
		return fmt.Errorf("row store: job cache: %w", err)
	}
	if s.chunks, err = lru.New[chunkKey, []string](decodedChunks); err != nil {
		return fmt.Errorf("row store: chunk cache: %w", err)
	}
	if s.begins, err = lru.New[string, int64](knownBegins); err != nil {
		return fmt.Errorf("row store: cache of beginnings: %w", err)
	}
	if s.seen, err = lru.New[scanKind, seen](knownScans); err != nil {
		return fmt.Errorf("row store: cache of scans: %w", err)
	}
	return s.migrate(ctx)
}

// Close waits for nothing: calls under way fail. Idempotent.
func (s *Store) Close() error {
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("row store: close: %w", err)
	}
	return nil
}

// Counts are counts since the start.
type Counts struct {
	Batches uint64 // inserts of pages
	Rows    uint64 // rows in them
	Bytes   uint64 // bytes of these rows
	Retries uint64 // calls repeated after the network failed them
	Known   uint64 // pages whose unit had a record already
	Raced   uint64 // records removed because another process stored the unit first
}

// Counts is safe to call at any time.
func (s *Store) Counts() Counts {
	c := &s.counts
	return Counts{Batches: c.batches.Load(), Rows: c.rows.Load(), Bytes: c.bytes.Load(),
		Retries: c.retries.Load(),
		Known:   c.known.Load(), Raced: c.raced.Load()}
}

// table returns the full name of a table.
func (s *Store) table(name string) string { return "`" + s.db + "`." + name }

// exec runs a statement that may safely be repeated.
func (s *Store) exec(ctx context.Context, limit time.Duration, statement string) error {
	return s.retry(ctx, limit,
		func(ctx context.Context) error { return s.conn.Exec(sized(ctx, statement), statement) })
}

// sized raises the server's limit for a long statement.
func sized(ctx context.Context, statement string) context.Context {
	if len(statement) < plainQuery {
		return ctx
	}
	return clickhouse.Context(ctx,
		clickhouse.WithSettings(clickhouse.Settings{"max_query_size": maxQuery}))
}

// retry calls fn again, a bounded number of times, if the network failed. What the server refused
// stays refused.
func (s *Store) retry(ctx context.Context, limit time.Duration,
	fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for try := 1; ; try++ {
		err := fn(ctx)
		if err == nil || try == tries || ctx.Err() != nil || !isNetwork(err) {
			return err
		}
		s.counts.retries.Add(1)
		s.logger.Warn("row store: call failed", "try", try, "error", err)
		if !clock.Pause(ctx, s.clock, retryPause<<(2*try)) {
			return err
		}
	}
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// read runs a query and scans its rows.
func read[T any](ctx context.Context, s *Store, query string,
	scan func(rows driver.Rows) (T, error)) ([]T, error) {
	var all []T
	err := s.retry(ctx, callTimeout, func(ctx context.Context) error {
		all = nil
		rows, err := s.conn.Query(sized(ctx, query), query)
		if err != nil {
			return err
		}
		for rows.Next() {
			value, err := scan(rows)
			if err != nil {
				return errors.Join(err, rows.Close())
			}
			all = append(all, value)
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	return all, err
}

func withColumns(ctx context.Context, columns []clickhouse.ColumnNameAndType) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithColumnNamesAndTypes(columns))
}
