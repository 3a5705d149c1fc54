// Package sqlite is the embedded row store: one SQLite database in one directory. It owns the
// schema, the turns of writes, the storage of link lists and the SQL of filters. Package rowstore
// defines what is stored and what it means.
//
// The only writer is a goroutine with the only writing connection, which ingest and list intake use
// in turns. Reads have their own connections and never wait for it (write-ahead log). Every commit
// is synced to disk.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	lru "github.com/hashicorp/golang-lru/v2"
	"modernc.org/sqlite"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/intake"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

// Config says where the store lives.
type Config struct {
	// Dir is the store's directory, created if missing. Only one Store at a time may use it.
	Dir string
	// Point is called at named places, so that tests can end the process there. A transaction has
	// "rowstore.before_commit" and "rowstore.after_commit". A list has
	// "rowstore.list_before_finish" and "rowstore.list_after_finish". A copy has
	// "rowstore.within_copy" before each part. nil: none.
	Point func(name string)
	// Free returns how many bytes the disk of a directory has left; nil: unknown.
	Free func(dir string) (bytes uint64, known bool)
}

// Bounds of memory.
const (
	readConnections = 4       // for customers' reads
	loopConnections = 2       // for the loop's own reads
	readCacheKiB    = 2 << 10 // per connection
	writeCacheKiB   = 8 << 10
	checkpointPages = 2_000 // of the write-ahead log, before it is copied into the database
	logBytes        = 32 << 20
	busyMillis      = 10_000
	decodedChunks   = 32
	maxCachedBytes  = 1 << 20 // of a decoded chunk; larger ones are not cached
)

// Store is a rowstore.Store on SQLite.
type Store struct {
	dir    string
	free   func(dir string) (bytes uint64, known bool) // nil: unknown
	writer *writer
	reads  *sql.DB // customers' reads
	// reads of the crawl itself, which never wait for a customer's
	loop    *sql.DB
	copies  *sql.DB                     // one copy at a time
	chunks  *lru.Cache[int64, []string] // the links of decoded chunks
	intakes *intake.Gate
	encode  record.Codec
	// patterns are the patterns in the filters of running queries.
	patterns *patterns
}

var _ rowstore.Store = (*Store)(nil)

// Open opens the store in its directory, and creates or migrates it if needed.
func Open(config Config) (*Store, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("row store: %w", err)
	}
	encode, err := record.NewCodec()
	if err != nil {
		return nil, fmt.Errorf("row store: %w", err)
	}
	chunks, err := lru.New[int64, []string](decodedChunks)
	if err != nil {
		return nil, fmt.Errorf("row store: chunk cache: %w", err)
	}
	patterns := newPatterns()
	engine, err := newDriver(patterns)
	if err != nil {
		return nil, fmt.Errorf("row store: %w", err)
	}
	path := filepath.Join(config.Dir, fileName)
	_ = os.Remove(path + unplaced) // a killed Place left it; one that stays is never read
	writer, err := openWriter(sql.OpenDB(connector{engine, writeDSN(path)}), config.Point)
	if err != nil {
		return nil, fmt.Errorf("row store %s: %w", path, err)
	}
	pool := func(connections int) *sql.DB {
		db := sql.OpenDB(keeping{connector{engine, readDSN(path)}})
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
		return db
	}
	return &Store{
		dir: config.Dir, free: config.Free, writer: writer,
		reads: pool(readConnections), loop: pool(loopConnections), copies: pool(1),
		chunks: chunks, encode: encode, intakes: intake.NewGate(), patterns: patterns,
	}, nil
}

// Identity implements rowstore.Store: no other process can refer to this store.
func (*Store) Identity(context.Context) (string, error) { return "", nil }

// Claim implements rowstore.Store.
func (*Store) Claim(_ context.Context, owner string, _ bool) (whose string, err error) {
	return owner, nil
}

// Advance implements rowstore.Store: no older program runs beside the store's only process.
func (*Store) Advance(context.Context) error { return nil }

// Free implements rowstore.Store.
func (s *Store) Free(context.Context) (bytes uint64, known bool, err error) {
	if s.free == nil {
		return 0, false, nil
	}
	bytes, known = s.free(s.dir)
	return bytes, known, nil
}

// Close waits for the write under way and closes the database. Later calls of any other method
// fail.
func (s *Store) Close() error {
	return errors.Join(s.reads.Close(), s.loop.Close(), s.copies.Close(), s.writer.close())
}

// view runs fn on one consistent state of the database.
func view(ctx context.Context, db *sql.DB, fn func(conn *sql.Conn) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("row store: a connection to read on: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// database/sql runs a goroutine per transaction, and one more per statement.
	if _, err := conn.ExecContext(context.Background(), `BEGIN`); err != nil {
		return fmt.Errorf("row store: begin read: %w", err)
	}
	defer func() {
		// never reuse the connection in this state
		if _, end := conn.ExecContext(context.Background(), `ROLLBACK`); end != nil {
			err = errors.Join(err, end, conn.Raw(func(any) error { return driver.ErrBadConn }))
		}
	}()
	return fn(conn)
}

// connector opens connections with the store's own driver: nobody else in the process sees its
// functions.
type connector struct {
	engine *sqlite.Driver
	dsn    string
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.engine.Open(c.dsn)
}

func (c connector) Driver() driver.Driver { return c.engine }

func writeDSN(path string) string {
	return dsn(path, "page_size(8192)", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)",
		"synchronous(FULL)", "locking_mode(NORMAL)",
		fmt.Sprintf("busy_timeout(%d)", busyMillis), fmt.Sprintf("cache_size(-%d)", writeCacheKiB),
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
		fmt.Sprintf("journal_size_limit(%d)", logBytes))
}

func readDSN(path string) string {
	return dsn(path, fmt.Sprintf("busy_timeout(%d)", busyMillis), "query_only(1)",
		fmt.Sprintf("cache_size(-%d)", readCacheKiB))
}

func dsn(path string, pragmas ...string) string {
	location := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	location.RawQuery = url.Values{"_pragma": pragmas}.Encode()
	return location.String()
}
