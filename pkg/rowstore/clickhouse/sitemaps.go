package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// sitemapsSchema is the table of what harvests know. The server drops the second of two inserts of
// a batch by its token. place combines batch and row.
func sitemapsSchema() string {
	return `CREATE TABLE IF NOT EXISTS DB.sitemaps (
	harvest FixedString(12),
	place   Int64,
	fetch   FixedString(12), -- which try of the batch it is
	doc     String CODEC(ZSTD(1))` + fieldColumns() + `
) ENGINE = ` + engine + `MergeTree ORDER BY (harvest, place)` + durable + `, index_granularity = 1024,
	non_replicated_deduplication_window = 10000`
}

// sitemapColumns returns the columns of an insert.
func sitemapColumns() []clickhouse.ColumnNameAndType {
	columns := []clickhouse.ColumnNameAndType{{Name: "harvest", Type: "FixedString(12)"},
		{Name: "place", Type: "Int64"}, {Name: "fetch", Type: "FixedString(12)"},
		{Name: "doc", Type: "String"}}
	return append(columns, fieldTypes()...)
}

// PutBatch implements rowstore.Sitemaps. It looks first, since the server knows only the tokens of
// the newest inserts.
func (s *Store) PutBatch(ctx context.Context, batch rowstore.Batch) (stands ids.ID, err error) {
	stands, err = s.standing(ctx, batch)
	if err == nil && stands.IsZero() {
		s.point("rowstore.before_batch")
		if err = s.insertBatch(ctx, batch); err == nil {
			stands, err = s.standing(ctx, batch)
		}
	}
	if err != nil {
		return ids.ID{}, fmt.Errorf("row store: batch of harvest %s: %w", batch.Harvest, err)
	}
	return stands, nil
}

// standing returns the Fetch under which a batch is stored; zero: it is not.
func (s *Store) standing(ctx context.Context, batch rowstore.Batch) (stands ids.ID, err error) {
	found, err := read(ctx, s, fmt.Sprintf(`SELECT fetch FROM %s WHERE harvest = %s AND place = %d
		ORDER BY fetch LIMIT 1`, s.table("sitemaps"), id(batch.Harvest),
		rowstore.PlaceOf(batch.Number, 0)), scanID)
	if err == nil && len(found) > 0 {
		stands = found[0]
	}
	return stands, err
}

func scanID(rows driver.Rows) (found ids.ID, err error) {
	var text string
	err = rows.Scan(&text)
	copy(found[:], text)
	return found, err
}

func (s *Store) insertBatch(ctx context.Context, batch rowstore.Batch) error {
	statement := fmt.Sprintf(`INSERT INTO %s SETTINGS insert_deduplicate = 1, insert_deduplication_token = '%s.%d'`,
		s.table("sitemaps"), batch.Harvest, batch.Number)
	return s.retry(ctx, callTimeout, func(ctx context.Context) error {
		insert, err := s.conn.PrepareBatch(withColumns(ctx, sitemapColumns()), statement)
		if err != nil {
			return err
		}
		defer func() { _ = insert.Close() }() // Send returns the error
		f := filler{insert: insert, store: s}
		for i, row := range batch.Rows {
			f.split(1, row)
			f.values = append(f.values[:0], batch.Harvest[:], rowstore.PlaceOf(batch.Number, i),
				batch.Fetch[:], row)
			if err := f.appendParts(); err != nil {
				return err
			}
		}
		return insert.Send()
	})
}

// Batches implements rowstore.Sitemaps.
func (s *Store) Batches(ctx context.Context, harvest ids.ID, after int64,
	most int) (docs []json.RawMessage, last int64, err error) {
	found, err := read(ctx, s, fmt.Sprintf(`SELECT doc, place FROM %s WHERE harvest = %s
		AND place > %d ORDER BY place LIMIT %d`, s.table("sitemaps"), id(harvest), after, most),
		func(rows driver.Rows) (p placed, err error) {
			var doc string
			err = rows.Scan(&doc, &p.place)
			p.doc = json.RawMessage(doc)
			return p, err
		})
	if err != nil {
		return nil, after, fmt.Errorf("row store: batches of harvest %s: %w", harvest, err)
	}
	last = after
	for _, p := range found {
		docs, last = append(docs, p.doc), p.place
	}
	return docs, last, nil
}

// Entries implements rowstore.Sitemaps.
func (s *Store) Entries(ctx context.Context, q rowstore.EntriesQuery) ([]json.RawMessage, error) {
	docs, err := read(ctx, s, fmt.Sprintf(`SELECT doc FROM %s WHERE harvest = %s AND %s
		ORDER BY %s LIMIT %d OFFSET %d SETTINGS %s`, s.table("sitemaps"), id(q.Harvest),
		printFilter(q.Filter), printSortBy(q.Sort, "place"), q.Limit, q.Offset, withoutTopK),
		scanDoc)
	if err != nil {
		return nil, fmt.Errorf("row store: entries of harvest %s: %w", q.Harvest, err)
	}
	return docs, nil
}

// CountEntries implements rowstore.Sitemaps.
func (s *Store) CountEntries(ctx context.Context, harvest ids.ID, f filter.Node) (int64, error) {
	counts, err := read(ctx, s, fmt.Sprintf(`SELECT count() FROM %s WHERE harvest = %s AND %s
		SETTINGS %s`, s.table("sitemaps"), id(harvest), printFilter(f), countSettings(f)),
		scanBlock)
	if err != nil {
		return 0, fmt.Errorf("row store: count of harvest %s: %w", harvest, err)
	}
	return int64(counts[0]), nil
}

// AllHarvests implements rowstore.Sitemaps. Until the cluster's upgrade is over, the table is
// missing and there are no harvests.
func (s *Store) AllHarvests(ctx context.Context) ([]ids.ID, error) {
	all, err := read(ctx, s, `SELECT DISTINCT harvest FROM `+s.table("sitemaps"), scanID)
	if refusedWith(err, tableUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("row store: harvests: %w", err)
	}
	return all, nil
}

// DropHarvest implements rowstore.Sitemaps.
func (s *Store) DropHarvest(ctx context.Context, harvest ids.ID) error {
	if err := s.exec(ctx, removeTimeout, `DELETE FROM `+s.table("sitemaps")+` WHERE harvest = `+
		id(harvest)); err != nil {
		return fmt.Errorf("row store: drop harvest %s: %w", harvest, err)
	}
	return nil
}
