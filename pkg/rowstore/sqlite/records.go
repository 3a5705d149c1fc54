package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

// recordsAtOnce is the most records that EachRecord holds at a time.
const recordsAtOnce = 1_000

// unitKey packs a unit; keys sort as units do.
func unitKey(u model.Unit) int64 { return int64(u.Seq)<<32 | int64(u.Page) }

func unitOf(key int64) model.Unit { return model.Unit{Seq: uint32(key >> 32), Page: uint32(key)} }

// numberList returns a JSON array, which passes any number of keys to a statement.
func numberList(numbers []int64) string {
	list := []byte{'['}
	for i, n := range numbers {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, n, 10)
	}
	return string(append(list, ']'))
}

const receiptColumns = `unit, outcome, items, quantity, price, last, content`

// scanRecord reads receiptColumns.
func scanRecord(rows *sql.Rows) (rowstore.Record, *model.Continuation, error) {
	var r rowstore.Record
	var key int64
	var encoded sql.RawBytes
	if err := rows.Scan(&key, &r.Outcome, &r.Items, &r.Quantity, &r.PriceRow, &r.Last,
		&encoded); err != nil {
		return r, nil, err
	}
	r.Unit = unitOf(key)
	next, err := record.Decode(encoded, &r)
	return r, next, err
}

func scanReceipt(rows *sql.Rows, job ids.ID) (model.Receipt, error) {
	r, next, err := scanRecord(rows)
	return model.Receipt{Job: job, Unit: r.Unit, Outcome: r.Outcome, PriceRow: r.PriceRow,
		Quantity: r.Quantity,
		Items:    r.Items, Last: r.Last, Next: next}, err
}

const ofJob = ` job = (SELECT id FROM jobs WHERE job = ?) `

// Records implements rowstore.Pages.
func (s *Store) Records(ctx context.Context, job ids.ID, units []model.Unit) ([]model.Receipt,
	error) {
	keys := make([]int64, len(units))
	for i, unit := range units {
		keys[i] = unitKey(unit)
	}
	var receipts []model.Receipt
	rows, err := s.loop.QueryContext(ctx, `SELECT `+receiptColumns+` FROM pages
		WHERE`+ofJob+`AND unit IN (SELECT value FROM json_each(?)) ORDER BY unit`, job[:], numberList(keys))
	err = each(rows, err, func(rows *sql.Rows) error {
		receipt, err := scanReceipt(rows, job)
		receipts = append(receipts, receipt)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: records of %s: %w", job, err)
	}
	return receipts, nil
}

// EachRecord implements rowstore.Pages. It holds nothing open between two batches.
func (s *Store) EachRecord(ctx context.Context, job ids.ID,
	visit func(rowstore.Record) error) error {
	for after := int64(-1); ; {
		records, err := records(ctx, s.loop, job, "unit > ?", after, recordsAtOnce)
		if err != nil {
			return err
		}
		for _, record := range records {
			if err := visit(record); err != nil {
				return err
			}
			after = unitKey(record.Unit)
		}
		if len(records) < recordsAtOnce {
			return nil
		}
	}
}

// records returns the records of a job whose units meet a condition, in the order of units.
func records(ctx context.Context, db *sql.DB, job ids.ID, where string, after int64, most int) (
	[]rowstore.Record, error,
) {
	var records []rowstore.Record
	rows, err := db.QueryContext(ctx, `SELECT `+receiptColumns+` FROM pages WHERE`+ofJob+`AND `+where+`
		ORDER BY unit`+limit, job[:], after, max(most, 0))
	err = each(rows, err, func(rows *sql.Rows) error {
		record, _, err := scanRecord(rows)
		records = append(records, record)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: records of %s: %w", job, err)
	}
	return records, nil
}

// Record implements rowstore.Reads.
func (s *Store) Record(ctx context.Context, job ids.ID, unit model.Unit) (*rowstore.Record, error) {
	found, err := records(ctx, s.reads, job, "unit = ?", unitKey(unit), 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// LinkErrors implements rowstore.Reads.
func (s *Store) LinkErrors(ctx context.Context, job ids.ID, after *model.Unit,
	most int) ([]rowstore.LinkError, error) {
	from := int64(-1)
	if after != nil {
		from = unitKey(*after)
	}
	records, err := records(ctx, s.reads, job, "outcome = 2 AND unit > ?", from, most)
	failed := make([]rowstore.LinkError, len(records))
	for i, r := range records {
		failed[i] = rowstore.LinkError{Unit: r.Unit, URL: r.URL, Status: r.Status, Code: r.Code,
			Detail: r.Detail}
	}
	return failed, err
}

// Recount implements rowstore.Pages.
func (s *Store) Recount(ctx context.Context, job ids.ID) (rowstore.Recount, error) {
	sum, condensed, err := s.noted(ctx, job)
	if err != nil || condensed {
		return sum, err
	}
	sum.Quantity = map[string]uint64{}
	rows, err := s.loop.QueryContext(ctx, `SELECT outcome, price, count(*), sum(items), sum(quantity) FROM pages
		WHERE`+ofJob+`GROUP BY outcome, price`, job[:])
	err = each(rows, err, func(rows *sql.Rows) error {
		var outcome model.Outcome
		var price string
		var pages, items, quantity uint64
		if err := rows.Scan(&outcome, &price, &pages, &items, &quantity); err != nil {
			return err
		}
		switch outcome {
		case model.Delivered:
			sum.Delivered += pages
			sum.Items += items
			sum.Quantity[price] += quantity
		case model.Errored:
			sum.Errored += pages
		}
		return nil
	})
	if err != nil {
		return rowstore.Recount{}, fmt.Errorf("row store: recount %s: %w", job, err)
	}
	if noted, condensed, err := s.noted(ctx, job); err != nil || condensed {
		return noted, err // the records may have gone during the read
	}
	return sum, nil
}
