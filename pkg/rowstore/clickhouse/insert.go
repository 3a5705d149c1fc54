package clickhouse

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/rowstore"
)

// insertColumns returns the columns of the tables that pages are inserted into.
func insertColumns() []clickhouse.ColumnNameAndType {
	columns := []clickhouse.ColumnNameAndType{
		{Name: "looked", Type: "DateTime64(3)"},
		{Name: "grp", Type: "FixedString(12)"}, {Name: "scraper", Type: "FixedString(12)"},
		{Name: "job", Type: "FixedString(12)"},
		{Name: "kind", Type: "UInt8"}, {Name: "seq", Type: "UInt32"},
		{Name: "page", Type: "UInt32"}, {Name: "n", Type: "UInt32"},
		{Name: "pos", Type: "UInt32"}, {Name: "started", Type: "Int64"},
		{Name: "at", Type: "Int64"},
		{Name: "fetch", Type: "FixedString(12)"}, {Name: "outcome", Type: "UInt8"},
		{Name: "items", Type: "UInt32"},
		{Name: "quantity", Type: "UInt32"}, {Name: "price", Type: "LowCardinality(String)"},
		{Name: "hash", Type: "UInt64"},
		{Name: "last", Type: "UInt8"}, {Name: "doc", Type: "String"},
	}
	return append(columns, fieldTypes()...)
}

// fieldTypes returns the columns of fields.
func fieldTypes() (columns []clickhouse.ColumnNameAndType) {
	for b := range buckets {
		columns = append(columns,
			clickhouse.ColumnNameAndType{Name: fmt.Sprintf("f%d.key", b),
				Type: "Array(LowCardinality(String))"},
			clickhouse.ColumnNameAndType{Name: fmt.Sprintf("f%d.kind", b), Type: "Array(UInt8)"},
			clickhouse.ColumnNameAndType{Name: fmt.Sprintf("f%d.num", b), Type: "Array(Float64)"},
			clickhouse.ColumnNameAndType{Name: fmt.Sprintf("f%d.text", b), Type: "Array(String)"})
	}
	return columns
}

// insert stores pages in one block. The token makes the server drop a repeated insert whose answer
// was lost, even while both are under way. It names the fetches and the round. Without the round,
// the server would also drop a block that was stored and removed since.
func (b *batch) insert(ctx context.Context, pages []rowstore.PageWrite, look *looked) error {
	s := b.store
	hash := xxh3.New()
	for i := range pages {
		page := pages[i].Page
		_, _ = fmt.Fprintf(hash, "%s %v %s %d,", pages[i].Job.ID, page.Unit, page.Fetch,
			page.Outcome)
	}
	sum := hash.Sum128().Bytes()
	statement := fmt.Sprintf(`INSERT INTO %s SETTINGS insert_deduplicate = 1, insert_deduplication_token = '%s.%d'`,
		s.table(look.layout.intake()), hex.EncodeToString(sum[:]), b.round)
	return s.retry(ctx, callTimeout, func(ctx context.Context) error {
		ctx = withColumns(ctx, s.columns)
		insert, err := s.conn.PrepareBatch(ctx, statement)
		if err != nil {
			return err
		}
		defer func() { _ = insert.Close() }() // Send returns the error
		f := filler{insert: insert, store: s, at: look.at}
		for i := range pages {
			if err := f.page(&pages[i]); err != nil {
				return err
			}
		}
		if err := insert.Send(); err != nil {
			return err
		}
		s.counts.batches.Add(1)
		s.counts.rows.Add(f.rows)
		s.counts.bytes.Add(f.bytes)
		return nil
	})
}

// filler fills an insert, which copies the values.
type filler struct {
	insert      driver.Batch
	store       *Store
	at          time.Time
	pos         uint32
	rows, bytes uint64
	fields      []field
	parts       [buckets]parts
	values      []any
}

// parts are the fields of a row in one bucket.
type parts struct {
	keys  []string
	kinds []uint8
	nums  []float64
	texts []string
}

func (f *filler) page(w *rowstore.PageWrite) error {
	p := w.Page
	content, err := f.store.encode.Encode(p)
	if err != nil {
		return err
	}
	if err := f.row(w, 0, 0, content); err != nil {
		return err
	}
	for n, doc := range p.Rows {
		if err := f.row(w, 1, uint32(n), doc); err != nil {
			return err
		}
		f.rows++
		f.bytes += uint64(len(doc))
	}
	return nil
}

func (f *filler) row(w *rowstore.PageWrite, kind uint8, n uint32, doc []byte) error {
	f.split(kind, doc)
	p, last := w.Page, uint8(0)
	if p.Last {
		last = 1
	}
	f.pos++
	f.values = append(f.values[:0], f.at, w.Job.Group[:], w.Job.Scraper[:], w.Job.ID[:], kind,
		p.Unit.Seq, p.Unit.Page, n, f.pos, w.Job.Started, p.At, p.Fetch[:], uint8(p.Outcome),
		uint32(len(p.Rows)), p.Quantity, p.PriceRow, p.URLHash, last, doc)
	return f.appendParts()
}

// appendParts appends a row to the insert: its values, then its fields as split left them.
func (f *filler) appendParts() error {
	for b := range f.parts {
		part := &f.parts[b]
		f.values = append(f.values, part.keys, part.kinds, part.nums, part.texts)
	}
	return f.insert.Append(f.values...)
}

// split puts the fields of a row into their buckets; a record has no fields.
func (f *filler) split(kind uint8, doc []byte) {
	for b := range f.parts {
		part := &f.parts[b]
		part.keys, part.kinds, part.nums, part.texts = part.keys[:0], part.kinds[:0], part.nums[:0],
			part.texts[:0]
	}
	if kind == 0 {
		return
	}
	f.fields = fields(f.fields[:0], doc)
	for i := range f.fields {
		field := &f.fields[i]
		part := &f.parts[bucketOf(field.key)]
		part.keys, part.kinds = append(part.keys, field.key), append(part.kinds, field.kind)
		part.nums, part.texts = append(part.nums, field.num), append(part.texts, field.text)
	}
}
