package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/rowstore"
)

// engine is the prefix of table engines. On a replicated server it becomes "Replicated", and the
// rows' PARTITION BY must go: see DESIGN.md.
const engine = ""

// migrations bring the schema from each version to the next: version n has had the first n.
// Released ones never change, and new ones only expand (see package rowstore). Each statement may
// run again after an interruption, or twice at once. DB is the database's name.
var migrations = [][]string{{
	// Jobs. A sealed one takes no more pages. Every value but the id merges to the greatest.
	`CREATE TABLE IF NOT EXISTS DB.jobs (
	job      FixedString(12),
	customer SimpleAggregateFunction(max, String),
	grp      SimpleAggregateFunction(max, FixedString(12)),
	scraper  SimpleAggregateFunction(max, FixedString(12)),
	started  SimpleAggregateFunction(max, Int64), -- Unix microseconds
	sealed   SimpleAggregateFunction(max, UInt8)
) ENGINE = ` + engine + `AggregatingMergeTree ORDER BY job` + durable,

	// Page records (kind 0) and rows (kind 1). A page's record and rows are one insert into one
	// partition, which the server commits as a whole. A row's place is its block number, then pos.
	`CREATE TABLE IF NOT EXISTS DB.rows (` + rowColumns() + `
) ENGINE = ` + engine + `MergeTree PARTITION BY toYYYYMM(fromUnixTimestamp64Micro(started, 'UTC'))` + rowOrder,

	// The jobs sealed recently, by the server's clock. They keep out the insert of a process that
	// looked before the seal.
	`CREATE TABLE IF NOT EXISTS DB.fences (
	job FixedString(12),
	at  DateTime64(3) DEFAULT now64(3)
) ENGINE = ` + engine + `MergeTree ORDER BY at TTL toDateTime(at) + INTERVAL 1 DAY` + durable,

	// Pages are inserted here, with the time at which their writer looked whether they are new.
	intakeInto("intake"),
	admitInto("admit", "rows", "intake"),

	// Link lists. state: 0 begun, 1 finished, 2 dropped.
	`CREATE TABLE IF NOT EXISTS DB.lists (
	list  FixedString(12),
	count SimpleAggregateFunction(max, UInt32),
	state SimpleAggregateFunction(max, UInt8)
) ENGINE = ` + engine + `AggregatingMergeTree ORDER BY list` + durable,
	`CREATE TABLE IF NOT EXISTS DB.chunks (
	list FixedString(12),
	n    UInt32,
	data String CODEC(NONE)
) ENGINE = ` + engine + `ReplacingMergeTree ORDER BY (list, n)` + durable + `, index_granularity = 16`,
}, {
	// Lets a scan find its places in a block without reading all of it. Existing data gets the
	// index in the background.
	`ALTER TABLE DB.rows ADD INDEX IF NOT EXISTS place pos TYPE minmax GRANULARITY 1`,
	`ALTER TABLE DB.rows MATERIALIZE INDEX place`,
}, {
	// Records and rows by weeks, which are dropped whole when they are old. The table's comment
	// tells whether it has replaced the table rows: see generations.go.
	`CREATE TABLE IF NOT EXISTS DB.weeks (` + rowColumns() + `,
	INDEX place pos TYPE minmax GRANULARITY 1
) ENGINE = ` + engine + `MergeTree PARTITION BY toMonday(toDate(fromUnixTimestamp64Micro(started, 'UTC')))` + rowOrder,
	intakeInto("intakeweekly"),
	admitInto("admitweekly", "weeks", "intakeweekly"),

	// What Retention keeps of page records: see package rowstore.
	`CREATE TABLE IF NOT EXISTS DB.sums (
	job   FixedString(12),
	noted Int64, -- Unix milliseconds
	sum   String CODEC(ZSTD(1))
) ENGINE = ` + engine + `ReplacingMergeTree PARTITION BY toYYYYMM(fromUnixTimestamp64Milli(noted, 'UTC'))
ORDER BY job` + durable + `, index_granularity = 1024`,
	`CREATE TABLE IF NOT EXISTS DB.charged (
	scraper FixedString(12),
	job     FixedString(12),
	part    UInt32,
	hashes  String CODEC(NONE) -- 8 bytes each
) ENGINE = ` + engine + `ReplacingMergeTree ORDER BY (scraper, job, part)` + durable + `, index_granularity = 16`,
	sitemapsSchema(),

	// The links of sites by version, with states as for lists, and the results of runs.
	`CREATE TABLE IF NOT EXISTS DB.siteversions (
	version FixedString(12),
	count   SimpleAggregateFunction(max, UInt32),
	state   SimpleAggregateFunction(max, UInt8)
) ENGINE = ` + engine + `AggregatingMergeTree ORDER BY version` + durable,
	`CREATE TABLE IF NOT EXISTS DB.sitelinks (
	version FixedString(12),
	seq     UInt32,
	hash    UInt64, -- of the canonical address
	url     String CODEC(ZSTD(1)),
	title   String CODEC(ZSTD(1)),
	curl    String CODEC(ZSTD(1))
) ENGINE = ` + engine + `ReplacingMergeTree ORDER BY (version, seq)` + durable + `, index_granularity = 1024`,
	`CREATE TABLE IF NOT EXISTS DB.linkstates (
	site    FixedString(12),
	hash    UInt64,
	state   UInt8,
	started Int64 -- Unix microseconds, of the run
) ENGINE = ` + engine + `ReplacingMergeTree(started) ORDER BY (site, hash)` + durable + `, index_granularity = 1024`,
}}

// openTo is the version to which Open brings a database at least. Later ones are left to Advance:
// programs of cluster version 1 refuse them.
const openTo = 2

// rowColumns and rowOrder are common to the tables of records and rows.
func rowColumns() string {
	return `
	grp      FixedString(12),
	scraper  FixedString(12),
	job      FixedString(12),
	kind     UInt8,
	seq      UInt32,
	page     UInt32,
	n        UInt32, -- of the row in its page
	pos      UInt32, -- in the insert
	started  Int64 CODEC(Delta, ZSTD(1)), -- of the job, Unix microseconds
	at       Int64 CODEC(Delta, ZSTD(1)), -- Unix microseconds when the page was read
	fetch    FixedString(12),
	outcome  UInt8,
	items    UInt32,
	quantity UInt32,
	price    LowCardinality(String),
	hash     UInt64, -- of the canonical address, 0 for none
	last     UInt8,  -- whether its chain ends here
	doc      String CODEC(ZSTD(1)), -- a row's document, a record's encoded content` + fieldColumns() + `,
	INDEX newest at TYPE minmax GRANULARITY 1`
}

const rowOrder = `
ORDER BY (grp, scraper, job, kind, seq, page, n)` + durable + `, index_granularity = 1024, enable_block_number_column = 1,
	add_minmax_index_for_block_number_column = 1, remove_empty_parts = 0, non_replicated_deduplication_window = 1000`

// intakeInto returns the statement that creates a table for inserts of pages.
func intakeInto(name string) string {
	return `CREATE TABLE IF NOT EXISTS DB.` + name + ` (
	grp FixedString(12), scraper FixedString(12), job FixedString(12), kind UInt8, seq UInt32, page UInt32, n UInt32,
	pos UInt32, started Int64, at Int64, fetch FixedString(12), outcome UInt8, items UInt32, quantity UInt32,
	price LowCardinality(String), hash UInt64, last UInt8, doc String` + fieldColumns() + `,
	looked DateTime64(3)
) ENGINE = Null`
}

// admitInto returns the statement that creates a view from the intake into a table.
func admitInto(name, table, intake string) string {
	return `CREATE MATERIALIZED VIEW IF NOT EXISTS DB.` + name + ` TO DB.` + table +
		` AS SELECT * EXCEPT looked FROM DB.` + intake + `
WHERE looked > now64(3) - INTERVAL 1 HOUR
	AND job NOT IN (SELECT job FROM DB.fences WHERE at > now64(3) - INTERVAL 2 HOUR)`
}

// durable makes an acknowledged insert survive a crash of the machine.
const durable = ` SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`

func fieldColumns() string {
	var b strings.Builder
	for i := range buckets {
		fmt.Fprintf(&b, ",\n\tf%d Nested(key LowCardinality(String), kind UInt8, num Float64, "+
			"text String)", i)
	}
	return b.String()
}

// The lock that migrations run under.
const (
	lockLife  = 2 * time.Minute // of a holder that died
	lockPause = 200 * time.Millisecond
)

// Error codes of the server.
const (
	tableExists     = 57
	tableUnknown    = 60
	databaseUnknown = 81
	tooManyBytes    = 396 // read by a look-up
)

// refusedWith reports whether the server answered with one of some codes.
func refusedWith(err error, codes ...int32) bool {
	var refused *clickhouse.Exception
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code)
}

// migrate brings the schema up to date: a new one to the newest version, an old one as far as older
// programs can follow. Any number of processes may start at once. If the schema is up to date, it
// changes nothing, as most roles lack the rights.
func (s *Store) migrate(ctx context.Context) error {
	version, err := s.version(ctx)
	target := min(openTo, len(migrations))
	if refusedWith(err, tableUnknown, databaseUnknown) {
		if err := s.found(ctx); err != nil {
			return err
		}
		version, err = s.version(ctx)
	}
	if version == 0 {
		target = len(migrations)
	}
	if err != nil || version >= target {
		return err
	}
	return s.migrateTo(ctx, target)
}

// migrateTo brings the schema to a version, and switches to weeks from the third on.
func (s *Store) migrateTo(ctx context.Context, target int) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	err := s.step(ctx, target)
	return errors.Join(err, s.unlock(context.WithoutCancel(ctx)))
}

// Advance implements rowstore.Store.
func (s *Store) Advance(ctx context.Context) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	if version >= len(migrations) {
		return nil
	}
	return s.migrateTo(ctx, len(migrations))
}

// found creates the database and the table of schema versions.
func (s *Store) found(ctx context.Context) error {
	for _, statement := range []string{
		"CREATE DATABASE IF NOT EXISTS `" + s.db + "`",
		`CREATE TABLE IF NOT EXISTS ` + s.table("migrations") + ` (version UInt32, at DateTime DEFAULT now(), node String)
			ENGINE = ` + engine + `MergeTree ORDER BY version` + durable,
	} {
		if err := s.exec(ctx, callTimeout, statement); err != nil {
			return fmt.Errorf("row store: %w", err)
		}
	}
	return nil
}

// version returns the schema's version; one that is too new for this program is an error.
func (s *Store) version(ctx context.Context) (int, error) {
	versions, err := read(ctx, s, `SELECT max(version) FROM `+s.table("migrations"),
		func(rows driver.Rows) (v uint32, err error) {
			err = rows.Scan(&v)
			return v, err
		})
	if err != nil {
		return 0, fmt.Errorf("row store: schema version: %w", err)
	}
	if int(versions[0]) > len(migrations)+rowstore.SchemasAhead {
		return 0, fmt.Errorf("row store: the database has schema version %d, this program knows "+
			"%d and works with one more: "+
			"start a newer release", versions[0], len(migrations))
	}
	return int(versions[0]), nil
}

func (s *Store) step(ctx context.Context, target int) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	for ; version < target; version++ {
		for _, statement := range migrations[version] {
			if err := s.exec(ctx, removeTimeout,
				strings.ReplaceAll(statement, "DB.", s.table(""))); err != nil {
				return fmt.Errorf("row store: migration %d: %w", version+1, err)
			}
		}
		if version+1 == weeklyFrom {
			if err := s.switchToWeeks(ctx); err != nil {
				return fmt.Errorf("row store: migration %d: %w", version+1, err)
			}
		}
		done := fmt.Sprintf(`INSERT INTO %s (version, node) VALUES (%d, %s)`, s.table("migrations"),
			version+1, text(s.node))
		if err := s.exec(ctx, callTimeout, done); err != nil {
			return fmt.Errorf("row store: migration %d: %w", version+1, err)
		}
	}
	return nil
}

// lock waits until only this process migrates: a table can be created only once. The process that
// first renames a dead process's lock removes it.
func (s *Store) lock(ctx context.Context) error {
	for {
		err := s.conn.Exec(ctx,
			`CREATE TABLE `+s.table("migrating")+` (node String DEFAULT `+text(s.node)+
				`) ENGINE = Memory`)
		switch {
		case err == nil:
			return nil
		case !refusedWith(err, tableExists):
			return fmt.Errorf("row store: lock migrations: %w", err)
		}
		if err := s.breakLock(ctx, lockLife); err != nil {
			return err
		}
		if !clock.Pause(ctx, s.clock, lockPause) {
			return fmt.Errorf("row store: another process migrates: %w", ctx.Err())
		}
	}
}

// breakLock removes a lock that is older than life.
func (s *Store) breakLock(ctx context.Context, life time.Duration) error {
	names, err := read(ctx, s, fmt.Sprintf(`SELECT toString(uuid) FROM system.tables WHERE database = %s
		AND name = 'migrating' AND metadata_modification_time < now() - INTERVAL %d SECOND`, text(s.db), life/time.Second),
		func(rows driver.Rows) (name string, err error) {
			err = rows.Scan(&name)
			return name, err
		})
	if err != nil {
		return fmt.Errorf("row store: age of the lock of migrations: %w", err)
	}
	for _, name := range names {
		broken := s.table("`broken_" + name + "`")
		if s.conn.Exec(ctx, `RENAME TABLE `+s.table("migrating")+` TO `+broken) != nil {
			continue // another process was faster
		}
		s.logger.Warn("row store: the lock of migrations was left by a process that died")
		if err := s.exec(ctx, callTimeout, `DROP TABLE IF EXISTS `+broken); err != nil {
			return fmt.Errorf("row store: lock migrations: %w", err)
		}
	}
	return nil
}

func (s *Store) unlock(ctx context.Context) error {
	if err := s.exec(ctx, callTimeout, `DROP TABLE IF EXISTS `+s.table("migrating")); err != nil {
		return fmt.Errorf("row store: unlock migrations: %w", err)
	}
	return nil
}
