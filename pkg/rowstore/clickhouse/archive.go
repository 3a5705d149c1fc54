package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/rowstore"
)

// The archive's tables are outside the schema versions: the previous release does not know them,
// but still opens the database. The first write creates them; until then reads take them as empty.
// A repeated write replaces a record by an equal one, so reads take the first of each.
var archiveSchema = []string{
	`CREATE TABLE IF NOT EXISTS DB.past_runs (
	customer   String,
	id         FixedString(12),
	generation FixedString(12),
	sealed     UInt64 CODEC(Delta, ZSTD(1)),
	trial      UInt8,
	grp        FixedString(12),
	scraper    FixedString(12),
	state      LowCardinality(String),
	list       FixedString(12),
	queued     Int64 CODEC(Delta, ZSTD(1)), -- Unix milliseconds, like started and finished
	started    Int64 CODEC(Delta, ZSTD(1)),
	finished   Int64 CODEC(Delta, ZSTD(1)),
	links      UInt32,
	success    UInt32,
	errors     UInt32,
	items      UInt64,
	pages      UInt64,
	delivered  UInt64,
	charged    Int64,
	body       String CODEC(ZSTD(1)),
	INDEX by_id id TYPE bloom_filter(0.001) GRANULARITY 1,
	INDEX by_list list TYPE bloom_filter(0.001) GRANULARITY 1,
	INDEX by_scraper scraper TYPE bloom_filter(0.001) GRANULARITY 1,
	INDEX by_sealed sealed TYPE minmax GRANULARITY 1
) ENGINE = ` + engine + `ReplacingMergeTree PARTITION BY toYYYYMM(toStartOfInterval(
	fromUnixTimestamp64Milli(finished, 'UTC'), INTERVAL 6 MONTH))
ORDER BY (customer, queued, id, generation)` + pastParts,
	`CREATE TABLE IF NOT EXISTS DB.past_entries (
	customer   String,
	created    UInt64 CODEC(Delta, ZSTD(1)),
	id         FixedString(12),
	generation FixedString(12),
	sealed     UInt64 CODEC(Delta, ZSTD(1)),
	body       String CODEC(ZSTD(1)),
	INDEX by_id id TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = ` + engine + `ReplacingMergeTree ORDER BY (customer, created, id, generation)` + pastParts,
}

// pastParts are the settings of tables from which a read wants a few records of one customer. Its
// cost is the files that it opens in each part that holds the customer. So a part is one file, and
// there are few parts. A partition is half a year. Parts ten minutes old merge into one. Parts
// above 2 GB stay as they are, so a merge rewrites at most 2 GB.
const pastParts = durable + `, index_granularity = 512, min_bytes_for_wide_part = 1000000000000,
	min_age_to_force_merge_seconds = 600, max_bytes_to_merge_at_max_space_in_pool = 2000000000`

const (
	pastRunColumns = `id, generation, sealed, customer, trial, grp, scraper, state, list, queued, ` +
		`started, finished, links, success, errors, items, pages, delivered, charged, body`
	pastEntryColumns = `id, generation, sealed, customer, created, body`
)

// pastRunTypes are the types of pastRunColumns, pastEntryTypes those of pastEntryColumns.
var (
	pastRunTypes = typed(pastRunColumns, "FixedString(12)", "FixedString(12)", "UInt64", "String",
		"UInt8", "FixedString(12)", "FixedString(12)", "LowCardinality(String)", "FixedString(12)",
		"Int64", "Int64", "Int64", "UInt32", "UInt32", "UInt32", "UInt64", "UInt64", "UInt64",
		"Int64", "String")
	pastEntryTypes = typed(pastEntryColumns, "FixedString(12)", "FixedString(12)", "UInt64",
		"String", "UInt64", "String")
)

func typed(columns string, types ...string) []clickhouse.ColumnNameAndType {
	var all []clickhouse.ColumnNameAndType
	for i, name := range strings.Split(columns, ", ") {
		all = append(all, clickhouse.ColumnNameAndType{Name: name, Type: types[i]})
	}
	return all
}

// PutPast implements rowstore.Archive.
func (s *Store) PutPast(ctx context.Context, runs []rowstore.PastRun,
	entries []rowstore.PastEntry) error {
	err := s.putPast(ctx, runs, entries)
	if refusedWith(err, tableUnknown) {
		for _, statement := range archiveSchema {
			if err := s.exec(ctx, callTimeout,
				strings.ReplaceAll(statement, "DB.", s.table(""))); err != nil {
				return fmt.Errorf("row store: make the archive: %w", err)
			}
		}
		err = s.putPast(ctx, runs, entries)
	}
	if err != nil {
		return fmt.Errorf("row store: archive: %w", err)
	}
	return nil
}

func (s *Store) putPast(ctx context.Context, runs []rowstore.PastRun,
	entries []rowstore.PastEntry) error {
	err := s.fill(ctx, "past_runs", pastRunColumns, pastRunTypes, len(runs), func(i int) []any {
		r := &runs[i]
		return []any{r.ID[:], r.Generation[:], r.Sealed, r.Customer, bit(r.Trial), r.Group[:],
			r.Scraper[:], r.State, r.List[:], r.Queued, r.Started, r.Finished, r.Links, r.Success,
			r.Errors, r.Items, r.Pages, r.Delivered, r.Charged, r.Body}
	})
	if err != nil {
		return err
	}
	s.point("rowstore.between_past")
	return s.fill(ctx, "past_entries", pastEntryColumns, pastEntryTypes, len(entries),
		func(i int) []any {
			e := &entries[i]
			return []any{e.ID[:], e.Generation[:], e.Sealed, e.Customer, e.Created, e.Body}
		})
}

func bit(is bool) uint8 {
	if is {
		return 1
	}
	return 0
}

// fill inserts count records, in one block per partition.
func (s *Store) fill(ctx context.Context, table, columns string,
	types []clickhouse.ColumnNameAndType, count int, values func(int) []any) error {
	if count == 0 {
		return nil
	}
	statement := `INSERT INTO ` + s.table(table) + ` (` + columns + `)`
	return s.retry(ctx, callTimeout, func(ctx context.Context) error {
		insert, err := s.conn.PrepareBatch(withColumns(ctx, types), statement)
		if err != nil {
			return err
		}
		defer func() { _ = insert.Close() }() // Send returns the error
		for i := range count {
			if err := insert.Append(values(i)...); err != nil {
				return err
			}
		}
		return insert.Send()
	})
}

// onPath writes the condition for the records of a path. identity() keeps several steps off the
// primary key, which an OR would make the server search mark by mark.
func onPath(path rowstore.Path) string {
	var steps []string
	for _, step := range path {
		steps = append(steps, fmt.Sprintf(`generation = %s AND sealed <= %d`, id(step.Generation),
			step.Upto))
	}
	switch len(steps) {
	case 0:
		return `0`
	case 1:
		return steps[0]
	}
	return `identity(` + strings.Join(steps, ` OR `) + `)`
}

// within adds the conditions of a span of runs.
func within(where []string, queued rowstore.PastSpan) []string {
	if queued.From > 0 {
		where = append(where, `queued >= `+strconv.FormatInt(queued.From, 10))
	}
	if queued.To > 0 {
		where = append(where, `queued < `+strconv.FormatInt(queued.To, 10))
	}
	return where
}

// past is read for a table that may not exist yet.
func past[T any](ctx context.Context, s *Store, query string,
	scan func(rows driver.Rows) (T, error)) ([]T, error) {
	all, err := read(ctx, s, query, scan)
	if refusedWith(err, tableUnknown) {
		return nil, nil
	}
	return all, err
}

// nearOffset is the offset up to which reading a customer's whole runs, in the order of the key,
// beats finding their ids first.
const nearOffset = 2_000

// behind writes the condition for what follows a place in an order. The server chooses granules by
// its first part alone.
func behind(by, further string, place rowstore.PastPlace) string {
	return fmt.Sprintf(`%s %s= %d AND (%[1]s, id) %[2]s (%[3]d, %[4]s)`, by, further, place.Value,
		id(place.ID))
}

// PastRuns implements rowstore.Archive.
func (s *Store) PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord,
	error) {
	where := []string{onPath(q.Path)}
	if q.Customer != "" {
		where = append(where, `customer = `+text(q.Customer))
	}
	if !q.Trials {
		where = append(where, `trial = 0`)
	}
	if !q.Scraper.IsZero() {
		where = append(where, `scraper = `+id(q.Scraper))
	}
	if !q.Group.IsZero() {
		where = append(where, `grp = `+id(q.Group))
	}
	if q.IDs != nil {
		where = append(where, `id IN `+idSet(q.IDs))
	}
	if len(q.Without) > 0 {
		where = append(where, `id NOT IN `+idSet(q.Without))
	}
	if q.Lists != nil {
		where = append(where, `list IN `+idSet(q.Lists))
	}
	if q.Kinds != nil {
		where = append(where, `(grp, scraper, state) IN (`+join(q.Kinds,
			func(k rowstore.PastKind) string {
				return `(` + id(k.Group) + `,` + id(k.Scraper) + `,` + text(k.State) + `)`
			})+`)`)
		if len(q.Kinds) == 0 {
			return nil, nil
		}
	}
	where = within(where, q.Queued)
	direction, further := ``, `>`
	if q.Descending {
		direction, further = ` DESC`, `<`
	}
	by := string(q.By)
	if q.Behind != nil {
		where = append(where, behind(by, further, *q.Behind))
	}
	from, order := ` FROM `+s.table("past_runs"), ` ORDER BY `+by+direction+`, id`+direction+
		` LIMIT 1 BY id`
	wanted := from + ` WHERE ` + strings.Join(where, ` AND `) + order +
		fmt.Sprintf(` LIMIT %d OFFSET %d`, q.Limit, q.Offset)
	if q.Customer == "" || q.By != rowstore.ByQueued || q.Offset > nearOffset {
		// Find the runs first, so that the other columns are read only for these.
		wanted = from + ` WHERE (customer, queued, id, generation) IN (SELECT customer, queued, id, generation` +
			wanted + `)` + order
	}
	// Body holds everything, and each further column costs time in each part.
	runs, err := past(ctx, s, `SELECT id, body`+wanted,
		func(rows driver.Rows) (r rowstore.PastRecord, err error) {
			var id, body string
			err = rows.Scan(&id, &body)
			r.Body = []byte(body)
			copy(r.ID[:], id)
			return r, err
		})
	if err != nil {
		return nil, fmt.Errorf("row store: past runs: %w", err)
	}
	return runs, nil
}

// CountPast implements rowstore.Archive.
func (s *Store) CountPast(ctx context.Context, path rowstore.Path, customer string,
	queued rowstore.PastSpan) ([]rowstore.PastCount, error) {
	counts, err := past(ctx, s, `SELECT grp, scraper, state, uniqExact(id) FROM `+
		s.table("past_runs")+` WHERE customer = `+text(customer)+` AND trial = 0 AND `+
		strings.Join(within([]string{onPath(path)}, queued), ` AND `)+` GROUP BY grp, scraper, state`,
		func(rows driver.Rows) (c rowstore.PastCount, err error) {
			var group, scraper string
			var runs uint64
			err = rows.Scan(&group, &scraper, &c.State, &runs)
			copy(c.Group[:], group)
			copy(c.Scraper[:], scraper)
			c.Runs = int64(runs)
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("row store: count past runs: %w", err)
	}
	return counts, nil
}

// PastEntries implements rowstore.Archive.
func (s *Store) PastEntries(ctx context.Context, q rowstore.PastEntriesQuery) ([]rowstore.PastEntry,
	error) {
	where := onPath(q.Path)
	switch {
	case len(q.Customers) == 1: // equality keeps the order of the key
		where += ` AND customer = ` + text(q.Customers[0])
	case q.Customers != nil:
		where += ` AND customer IN (` + join(q.Customers, text) + `)`
	}
	if q.IDs != nil {
		where += ` AND id IN ` + idSet(q.IDs)
	}
	if q.Before != nil {
		where += ` AND ` + behind(`created`, `<`, *q.Before)
	}
	entries, err := past(ctx, s, `SELECT `+pastEntryColumns+` FROM `+s.table("past_entries")+
		` WHERE `+where+` ORDER BY created DESC, id DESC LIMIT 1 BY id`+
		fmt.Sprintf(` LIMIT %d OFFSET %d`, q.Limit, q.Offset),
		func(rows driver.Rows) (e rowstore.PastEntry, err error) {
			var id, generation, body string
			err = rows.Scan(&id, &generation, &e.Sealed, &e.Customer, &e.Created, &body)
			e.Body = []byte(body)
			copy(e.ID[:], id)
			copy(e.Generation[:], generation)
			return e, err
		})
	if err != nil {
		return nil, fmt.Errorf("row store: past entries: %w", err)
	}
	return entries, nil
}

// PastHead implements rowstore.Archive.
func (s *Store) PastHead(ctx context.Context, path rowstore.Path) (uint64, error) {
	var head uint64
	for _, table := range []string{"past_runs", "past_entries"} {
		found, err := past(ctx, s, `SELECT max(sealed) FROM `+s.table(table)+` WHERE `+onPath(path),
			func(rows driver.Rows) (one uint64, err error) { return one, rows.Scan(&one) })
		if err != nil {
			return 0, fmt.Errorf("row store: head of the archive: %w", err)
		}
		head = max(head, slices.Max(append(found, 0)))
	}
	return head, nil
}

// ExpirePast implements rowstore.Archive.
func (s *Store) ExpirePast(ctx context.Context, before time.Time) error {
	at := fmt.Sprintf(`fromUnixTimestamp64Milli(toInt64(%d), 'UTC')`, before.UnixMilli())
	for _, old := range []struct{ table, time, partition string }{
		{"sums", "noted", `toYYYYMM(` + at + `)`},
		{"past_runs", "finished", `toYYYYMM(toStartOfInterval(` + at + `, INTERVAL 6 MONTH))`},
	} {
		err := s.dropPartsBefore(ctx, old.table, old.partition)
		if err == nil {
			err = s.deleteWhere(ctx, old.table, fmt.Sprintf(`%s < %d`, old.time,
				before.UnixMilli()))
		}
		if err != nil {
			return fmt.Errorf("row store: expire %s: %w", old.table, err)
		}
	}
	return nil
}

// dropPartsBefore drops a table's partitions before the one that an expression names. They are
// over, so nothing is written to them that would have to stay.
func (s *Store) dropPartsBefore(ctx context.Context, table, partition string) error {
	old, err := past(ctx, s, fmt.Sprintf(`SELECT DISTINCT partition_id FROM system.parts
		WHERE database = %s AND table = %s AND active AND toUInt32OrZero(partition_id) > 0
		AND toUInt32OrZero(partition_id) < %s`, text(s.db), text(table), partition),
		func(rows driver.Rows) (name string, err error) { return name, rows.Scan(&name) })
	for i := 0; i < len(old) && err == nil; i++ {
		err = s.exec(ctx, removeTimeout, `ALTER TABLE `+s.table(table)+` DROP PARTITION ID `+
			text(old[i]))
	}
	return err
}

// deleteWhere deletes a table's rows, if a condition holds for any. A delete marks them in the
// parts that have such rows, and writes parts of one file anew.
func (s *Store) deleteWhere(ctx context.Context, table, condition string) error {
	left, err := past(ctx, s, `SELECT 1 FROM `+s.table(table)+` WHERE `+condition+` LIMIT 1`,
		scanOne)
	if err == nil && len(left) > 0 {
		err = s.exec(ctx, removeTimeout, `DELETE FROM `+s.table(table)+` WHERE `+condition)
	}
	return err
}
