package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// archiveSchema is outside the schema versions: the previous release does not know it, but still
// opens the database.
const archiveSchema = `
CREATE TABLE IF NOT EXISTS past_runs (
	id         BLOB NOT NULL,
	generation BLOB NOT NULL,
	sealed     INTEGER NOT NULL,
	customer   TEXT NOT NULL,
	trial      INTEGER NOT NULL,
	grp        BLOB NOT NULL,
	scraper    BLOB NOT NULL,
	state      TEXT NOT NULL,
	list       BLOB NOT NULL,
	queued     INTEGER NOT NULL, -- Unix milliseconds, like started and finished
	started    INTEGER NOT NULL,
	finished   INTEGER NOT NULL,
	links      INTEGER NOT NULL,
	success    INTEGER NOT NULL,
	errors     INTEGER NOT NULL,
	items      INTEGER NOT NULL,
	pages      INTEGER NOT NULL,
	delivered  INTEGER NOT NULL,
	charged    INTEGER NOT NULL,
	body       BLOB NOT NULL,
	PRIMARY KEY (id, generation)
) WITHOUT ROWID;
DROP INDEX IF EXISTS past_runs_started; -- of before: they had the id last
DROP INDEX IF EXISTS past_runs_queued;
DROP INDEX IF EXISTS past_runs_kind;
DROP INDEX IF EXISTS past_runs_scraper;
-- Behind what runs are sorted by, each has all that a page leaves runs out by: what comes before a
-- page is passed over within the index.
CREATE INDEX IF NOT EXISTS past_runs_by_start ON past_runs
	(customer, trial, started, id, generation, sealed, grp, scraper, state);
CREATE INDEX IF NOT EXISTS past_runs_by_queue ON past_runs
	(customer, trial, queued, id, generation, sealed);
CREATE INDEX IF NOT EXISTS past_runs_of_scraper ON past_runs
	(scraper, queued, id, generation, sealed);
CREATE INDEX IF NOT EXISTS past_runs_behind ON past_runs
	(customer, trial, generation, sealed, grp, scraper, state);
CREATE INDEX IF NOT EXISTS past_runs_list ON past_runs (list);
CREATE INDEX IF NOT EXISTS past_runs_sealed ON past_runs (sealed, id);
CREATE INDEX IF NOT EXISTS past_runs_head ON past_runs (generation, sealed);
CREATE INDEX IF NOT EXISTS past_runs_finished ON past_runs (finished);

CREATE TABLE IF NOT EXISTS past_entries (
	id         BLOB NOT NULL,
	generation BLOB NOT NULL,
	sealed     INTEGER NOT NULL,
	customer   TEXT NOT NULL,
	created    INTEGER NOT NULL,
	body       BLOB NOT NULL,
	PRIMARY KEY (id, generation)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS past_entries_sealed ON past_entries (generation, sealed);
DROP INDEX IF EXISTS past_entries_created; -- of before
CREATE INDEX IF NOT EXISTS past_entries_by_time ON past_entries
	(customer, created, id, generation, sealed);

CREATE TABLE IF NOT EXISTS audit (
	number     INTEGER NOT NULL,
	generation BLOB NOT NULL,
	hash       BLOB NOT NULL,
	sealed     INTEGER NOT NULL,
	at         INTEGER NOT NULL, -- Unix milliseconds
	actor      TEXT NOT NULL,
	customer   TEXT NOT NULL,
	body       BLOB NOT NULL,
	PRIMARY KEY (number, generation, hash)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS audit_by_actor ON audit (actor, number);
CREATE INDEX IF NOT EXISTS audit_by_customer ON audit (customer, number);
CREATE INDEX IF NOT EXISTS audit_head ON audit (generation, sealed, number);
`

const (
	pastRunColumns = `id, generation, sealed, customer, trial, grp, scraper, state, list, queued, ` +
		`started, finished, links, success, errors, items, pages, delivered, charged, body`
	pastEntryColumns = `id, generation, sealed, customer, created, body`

	// expiredAtOnce bounds how many runs one turn of the writer removes.
	expiredAtOnce = 2_000
)

// makeArchive creates the missing tables of the archive.
func makeArchive(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a no-op after Commit
	if _, err := tx.ExecContext(ctx, archiveSchema); err != nil {
		return err
	}
	counted := 0
	err = tx.QueryRowContext(ctx,
		`SELECT count(*) FROM sqlite_schema WHERE name = 'past_counts'`).Scan(&counted)
	if err == nil && counted == 0 {
		_, err = tx.ExecContext(ctx, countsSchema)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// PutPast implements rowstore.Archive.
func (s *Store) PutPast(ctx context.Context, runs []rowstore.PastRun,
	entries []rowstore.PastEntry) error {
	if len(runs) == 0 && len(entries) == 0 {
		return nil
	}
	return s.writer.do(ctx, s.writer.bulk, func() error {
		added := map[counted]int64{}
		for i := range runs {
			r := &runs[i]
			stored, err := s.writer.exec(`INSERT OR IGNORE INTO past_runs (`+pastRunColumns+`)
				VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, r.ID[:], r.Generation[:],
				int64(r.Sealed), r.Customer, r.Trial, r.Group[:], r.Scraper[:], r.State, r.List[:],
				r.Queued, r.Started, r.Finished, r.Links, r.Success, r.Errors, int64(r.Items),
				int64(r.Pages), int64(r.Delivered), r.Charged, r.Body)
			if err != nil {
				return fmt.Errorf("run %s: %w", r.ID, err)
			}
			if !r.Trial {
				added[counted{r.Customer, r.Generation, r.PastKind}] += stored
			}
		}
		for i := range entries {
			e := &entries[i]
			if _, err := s.writer.exec(`INSERT OR IGNORE INTO past_entries (`+pastEntryColumns+`)
				VALUES (?,?,?,?,?,?)`, e.ID[:], e.Generation[:], int64(e.Sealed), e.Customer,
				int64(e.Created), e.Body); err != nil {
				return fmt.Errorf("entry %s: %w", e.ID, err)
			}
		}
		return s.writer.count(added)
	})
}

// condition is the text after WHERE, with its arguments.
type condition struct {
	text strings.Builder
	args []any
}

// on begins a condition that selects the records of a path.
func on(path rowstore.Path) *condition {
	c := &condition{}
	c.text.WriteString(`(0`)
	for _, step := range path {
		c.text.WriteString(` OR generation = ? AND sealed <= ?`)
		c.args = append(c.args, step.Generation[:], int64(step.Upto))
	}
	c.text.WriteByte(')')
	return c
}

func (c *condition) and(text string, args ...any) {
	c.text.WriteString(` AND ` + text)
	c.args = append(c.args, args...)
}

// among requires a column of ids to hold one of list.
func (c *condition) among(column string, list []ids.ID) {
	if list == nil {
		return
	}
	c.and(column+` IN (SELECT unhex(value) FROM json_each(?))`, hexList(list))
}

// hexList returns ids as a JSON array.
func hexList(list []ids.ID) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, id := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + id.String() + `"`)
	}
	b.WriteByte(']')
	return b.String()
}

// kinds requires runs to have one of these kinds.
func (c *condition) kinds(kinds []rowstore.PastKind) error {
	if kinds == nil {
		return nil
	}
	list := make([][3]string, len(kinds))
	for i, k := range kinds {
		list[i] = [3]string{k.Group.String(), k.Scraper.String(), k.State}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("row store: kinds of runs: %w", err)
	}
	c.and(`(grp, scraper, state) IN (SELECT unhex(value ->> 0), unhex(value ->> 1), value ->> 2
		FROM json_each(?))`, string(encoded))
	return nil
}

// within requires runs to be queued in a span.
func (c *condition) within(queued rowstore.PastSpan) {
	if queued.From > 0 {
		c.and(`queued >= ?`, queued.From)
	}
	if queued.To > 0 {
		c.and(`queued < ?`, queued.To)
	}
}

// page selects one page of records. Limit and offset follow the condition's arguments. It finds the
// page's ids first, so it does not read the records before the page.
func page(table, columns string, where *condition, by, direction string) string {
	order := ` ORDER BY ` + by + direction + `, id` + direction
	return `SELECT ` + columns + ` FROM (SELECT id, generation FROM ` + table + ` WHERE ` +
		where.text.String() + order + limit + ` OFFSET CAST(? AS INTEGER)) CROSS JOIN ` + table +
		` USING (id, generation)` + order
}

// pastRuns returns the statement for a query, with its arguments.
func pastRuns(q rowstore.PastQuery) (text string, args []any, err error) {
	where := on(q.Path)
	by := ``
	if q.IDs != nil {
		by = `+` // the primary key finds them, however many runs the customer has
	}
	if q.Customer != "" {
		where.and(by+`customer = ?`, q.Customer)
	}
	if !q.Trials {
		where.and(by + `trial = 0`)
	}
	if !q.Scraper.IsZero() {
		where.and(`scraper = ?`, q.Scraper[:])
	}
	if !q.Group.IsZero() {
		where.and(`grp = ?`, q.Group[:])
	}
	where.among(`id`, q.IDs)
	if len(q.Without) > 0 {
		where.and(`id NOT IN (SELECT unhex(value) FROM json_each(?))`, hexList(q.Without))
	}
	where.among(`list`, q.Lists)
	if err := where.kinds(q.Kinds); err != nil {
		return "", nil, err
	}
	where.within(q.Queued)
	direction, further := ``, `>`
	if q.Descending {
		direction, further = ` DESC`, `<`
	}
	if q.Behind != nil {
		where.and(`(`+string(q.By)+`, id) `+further+` (?, ?)`, q.Behind.Value, q.Behind.ID[:])
	}
	return page(`past_runs`, `id, body`, where, string(q.By), direction),
		append(where.args, q.Limit, q.Offset), nil
}

// PastRuns implements rowstore.Archive.
func (s *Store) PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord,
	error) {
	statement, args, err := pastRuns(q)
	if err != nil {
		return nil, err
	}
	rows, err := s.reads.QueryContext(ctx, statement, args...)
	var runs []rowstore.PastRecord
	err = each(rows, err, func(rows *sql.Rows) error {
		var id idColumn
		var body []byte
		err := rows.Scan(&id, &body)
		runs = append(runs, rowstore.PastRecord{ID: ids.ID(id), Body: body})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: past runs: %w", err)
	}
	return runs, nil
}

// pastEntries returns the statement for a query, with its arguments.
func pastEntries(q rowstore.PastEntriesQuery) (text string, args []any) {
	where := on(q.Path)
	switch {
	case q.IDs != nil && q.Customers != nil: // the ids find them
		theirs, _ := json.Marshal(q.Customers) // strings never fail
		where.and(`+customer IN (SELECT value FROM json_each(?))`, string(theirs))
	case q.Customers != nil:
		where.and(`customer = ?`, q.Customers[0])
	}
	where.among(`id`, q.IDs)
	if q.Before != nil {
		where.and(`(created, id) < (?, ?)`, q.Before.Value, q.Before.ID[:])
	}
	return page(`past_entries`, pastEntryColumns, where, `created`, ` DESC`),
		append(where.args, q.Limit, q.Offset)
}

// PastEntries implements rowstore.Archive.
func (s *Store) PastEntries(ctx context.Context, q rowstore.PastEntriesQuery) ([]rowstore.PastEntry,
	error) {
	statement, args := pastEntries(q)
	rows, err := s.reads.QueryContext(ctx, statement, args...)
	var entries []rowstore.PastEntry
	err = each(rows, err, func(rows *sql.Rows) error {
		var e rowstore.PastEntry
		var id, generation idColumn
		err := rows.Scan(&id, &generation, &e.Sealed, &e.Customer, &e.Created, &e.Body)
		e.ID, e.Generation = ids.ID(id), ids.ID(generation)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: past entries: %w", err)
	}
	return entries, nil
}

// PastHead implements rowstore.Archive.
func (s *Store) PastHead(ctx context.Context, path rowstore.Path) (uint64, error) {
	head := int64(0)
	for _, step := range path {
		for _, table := range []string{"past_runs", "past_entries"} {
			rows, err := s.reads.QueryContext(ctx, `SELECT coalesce(max(sealed), 0) FROM `+table+
				` WHERE generation = ? AND sealed <= ?`, step.Generation[:], int64(step.Upto))
			err = each(rows, err, func(rows *sql.Rows) error {
				var one int64
				err := rows.Scan(&one)
				head = max(head, one)
				return err
			})
			if err != nil {
				return 0, fmt.Errorf("row store: head of the archive: %w", err)
			}
		}
	}
	return uint64(head), nil
}

// ExpirePast implements rowstore.Archive. Each turn of the writer removes a bounded number.
func (s *Store) ExpirePast(ctx context.Context, before time.Time) error {
	for _, statements := range [][]string{
		{uncountExpired, forgetCounts,
			`DELETE FROM past_runs WHERE (id, generation) IN (` + expiredRuns + `)`},
		{`DELETE FROM sums WHERE job IN (SELECT job FROM sums WHERE noted < ?1 LIMIT ?2)`},
	} {
		for removed := int64(expiredAtOnce); removed == expiredAtOnce; {
			err := s.writer.do(ctx, s.writer.bulk, func() (err error) {
				for _, statement := range statements {
					removed, err = s.writer.exec(statement, before.UnixMilli(), expiredAtOnce)
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("row store: expire past runs: %w", err)
			}
		}
	}
	return nil
}

// idColumn scans an id.
type idColumn ids.ID

// Scan implements sql.Scanner.
func (c *idColumn) Scan(value any) error {
	bytes, ok := value.([]byte)
	if !ok || len(bytes) != len(c) {
		return fmt.Errorf("%v is no id", value)
	}
	copy(c[:], bytes)
	return nil
}
