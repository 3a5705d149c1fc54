package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// sitemapsSchema is outside the schema versions, like the archive's.
const sitemapsSchema = `
-- What harvests know. place has the batch, and behind it the row.
CREATE TABLE IF NOT EXISTS sitemaps (
	harvest BLOB NOT NULL,
	place   INTEGER NOT NULL,
	fetch   BLOB NOT NULL, -- which try of the batch it is
	doc     TEXT NOT NULL,
	PRIMARY KEY (harvest, place)
) WITHOUT ROWID;
`

// droppedAtOnce is how many rows of a harvest one turn of the writer removes.
const droppedAtOnce = 2_000

// PutBatch implements rowstore.Sitemaps.
func (s *Store) PutBatch(ctx context.Context, batch rowstore.Batch) (stands ids.ID, err error) {
	w := s.writer
	err = w.do(ctx, w.bulk, func() error {
		stands = batch.Fetch
		known := false
		err := w.query(func(rows *sql.Rows) error {
			var fetch idColumn
			err := rows.Scan(&fetch)
			known, stands = true, ids.ID(fetch)
			return err
		}, `SELECT fetch FROM sitemaps WHERE harvest = ? AND place = ?`, batch.Harvest[:],
			rowstore.PlaceOf(batch.Number, 0))
		if err != nil || known {
			return err
		}
		values := make([]any, 0, 4*len(batch.Rows))
		for i, row := range batch.Rows {
			values = append(values, batch.Harvest[:], rowstore.PlaceOf(batch.Number, i),
				batch.Fetch[:], string(row))
		}
		return w.insert("sitemaps", "harvest, place, fetch, doc", values)
	})
	if err != nil {
		return ids.ID{}, fmt.Errorf("row store: batch of harvest %s: %w", batch.Harvest, err)
	}
	return stands, nil
}

// Batches implements rowstore.Sitemaps.
func (s *Store) Batches(ctx context.Context, harvest ids.ID, after int64,
	most int) (docs []json.RawMessage, last int64, err error) {
	last = after
	rows, err := s.loop.QueryContext(ctx, `SELECT place, doc FROM sitemaps
		WHERE harvest = ? AND place > ? ORDER BY place`+limit, harvest[:], after, most)
	err = each(rows, err, func(rows *sql.Rows) error {
		var doc []byte
		err := rows.Scan(&last, &doc)
		docs = append(docs, doc)
		return err
	})
	if err != nil {
		return nil, after, fmt.Errorf("row store: batches of harvest %s: %w", harvest, err)
	}
	return docs, last, nil
}

// Entries implements rowstore.Sitemaps.
func (s *Store) Entries(ctx context.Context, q rowstore.EntriesQuery) ([]json.RawMessage, error) {
	query := s.patterns.beginQuery(ctx)
	defer query.end()
	condition, args := printFilter(q.Filter, query)
	terms, more := printSort(q.Sort)
	args = append(append([]any{q.Harvest[:]}, args...), more...)
	var docs []json.RawMessage
	rows, err := s.reads.QueryContext(ctx, `SELECT doc FROM sitemaps WHERE harvest = ? AND `+
		condition+` ORDER BY `+terms+limit+` OFFSET CAST(? AS INTEGER)`,
		append(args, q.Limit, q.Offset)...)
	err = each(rows, err, func(rows *sql.Rows) error {
		var doc []byte
		err := rows.Scan(&doc)
		docs = append(docs, doc)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: entries of harvest %s: %w", q.Harvest,
			query.failure(err))
	}
	return docs, nil
}

// CountEntries implements rowstore.Sitemaps.
func (s *Store) CountEntries(ctx context.Context, harvest ids.ID, f filter.Node) (int64, error) {
	query := s.patterns.beginQuery(ctx)
	defer query.end()
	condition, args := printFilter(f, query)
	var count int64
	err := s.reads.QueryRowContext(ctx, `SELECT count(*) FROM sitemaps WHERE harvest = ? AND `+
		condition, append([]any{harvest[:]}, args...)...).Scan(&count)
	if err != nil {
		return 0, fmt.Errorf("row store: count of harvest %s: %w", harvest, query.failure(err))
	}
	return count, nil
}

// AllHarvests implements rowstore.Sitemaps. It skips from the first row of one harvest to the next.
func (s *Store) AllHarvests(ctx context.Context) ([]ids.ID, error) {
	rows, err := s.loop.QueryContext(ctx, `WITH RECURSIVE known(harvest) AS (
			SELECT min(harvest) FROM sitemaps UNION ALL
			SELECT (SELECT min(harvest) FROM sitemaps WHERE harvest > known.harvest) FROM known
			WHERE known.harvest IS NOT NULL)
		SELECT harvest FROM known WHERE harvest IS NOT NULL`)
	var all []ids.ID
	err = each(rows, err, func(rows *sql.Rows) error {
		var harvest idColumn
		err := rows.Scan(&harvest)
		all = append(all, ids.ID(harvest))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: harvests: %w", err)
	}
	return all, nil
}

// DropHarvest implements rowstore.Sitemaps. Each turn of the writer removes a bounded number of
// rows, the last ones first: PutBatch knows a batch by its first row.
func (s *Store) DropHarvest(ctx context.Context, harvest ids.ID) error {
	w := s.writer
	for more := true; more; {
		err := w.do(ctx, w.bulk, func() error {
			removed, err := w.exec(`DELETE FROM sitemaps WHERE harvest = ?1 AND place IN (
				SELECT place FROM sitemaps WHERE harvest = ?1 ORDER BY place DESC LIMIT ?2)`,
				harvest[:], droppedAtOnce)
			more = removed > 0
			return err
		})
		if err != nil {
			return fmt.Errorf("row store: drop harvest %s: %w", harvest, err)
		}
	}
	return nil
}
