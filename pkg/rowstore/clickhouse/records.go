package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

// recordsAtOnce is the most records that EachRecord and Seal hold at a time.
const recordsAtOnce = 20_000

// found is a record with its continuation.
type found struct {
	rowstore.Record
	next *model.Continuation
}

// records returns the standing records of a job that meet a condition, in the order of units. Of
// two records of a unit, the one that was committed first stands.
func (s *Store) records(ctx context.Context, job ids.ID, condition string, most int) ([]found,
	error) {
	where, err := s.ofJob(ctx, job)
	if err != nil || most <= 0 {
		return nil, err
	}
	from, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	all, err := read(ctx, s, fmt.Sprintf(`SELECT seq, page, outcome, items, quantity, price, last, doc FROM %s
		WHERE %s AND kind = 0 AND %s ORDER BY seq, page, _block_number, pos LIMIT 1 BY seq, page LIMIT %d`,
		from.from, where, condition, most), func(rows driver.Rows) (r found, err error) {
		var outcome, last uint8
		var content string
		err = rows.Scan(&r.Unit.Seq, &r.Unit.Page, &outcome, &r.Items, &r.Quantity, &r.PriceRow,
			&last, &content)
		if err != nil {
			return r, err
		}
		r.Outcome, r.Last = model.Outcome(outcome), last == 1
		r.next, err = record.Decode([]byte(content), &r.Record)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: records of %s: %w", job, err)
	}
	return all, nil
}

// afterUnit returns a condition for the units that follow one; nil: all.
func afterUnit(unit *model.Unit) string {
	if unit == nil {
		return `1`
	}
	return fmt.Sprintf(`(seq > %d OR seq = %d AND page > %d)`, unit.Seq, unit.Seq, unit.Page)
}

// Records implements rowstore.Pages.
func (s *Store) Records(ctx context.Context, job ids.ID, units []model.Unit) ([]model.Receipt,
	error) {
	all, err := s.records(ctx, job, `(seq, page) IN (`+join(units, func(u model.Unit) string {
		return fmt.Sprintf(`(%d,%d)`, u.Seq, u.Page)
	})+`)`, len(units))
	var receipts []model.Receipt
	for _, r := range all {
		receipts = append(receipts,
			model.Receipt{Job: job, Unit: r.Unit, Outcome: r.Outcome, PriceRow: r.PriceRow,
				Quantity: r.Quantity, Items: r.Items, Last: r.Last, Next: r.next})
	}
	return receipts, err
}

// EachRecord implements rowstore.Pages. It holds nothing open between two batches.
func (s *Store) EachRecord(ctx context.Context, job ids.ID,
	visit func(rowstore.Record) error) error {
	for after := (*model.Unit)(nil); ; {
		all, err := s.records(ctx, job, afterUnit(after), recordsAtOnce)
		if err != nil {
			return err
		}
		for i := range all {
			if err := visit(all[i].Record); err != nil {
				return err
			}
			after = &all[i].Unit
		}
		if len(all) < recordsAtOnce {
			return nil
		}
	}
}

// Record implements rowstore.Reads.
func (s *Store) Record(ctx context.Context, job ids.ID, unit model.Unit) (*rowstore.Record, error) {
	found, err := s.records(ctx, job,
		fmt.Sprintf(`seq = %d AND page = %d`, unit.Seq, unit.Page), 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0].Record, nil
}

// LinkErrors implements rowstore.Reads.
func (s *Store) LinkErrors(ctx context.Context, job ids.ID, after *model.Unit,
	most int) ([]rowstore.LinkError, error) {
	all, err := s.records(ctx, job,
		fmt.Sprintf(`outcome = %d AND `, model.Errored)+afterUnit(after), most)
	failed := make([]rowstore.LinkError, len(all))
	for i, r := range all {
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
	where, err := s.ofJob(ctx, job)
	if err != nil {
		return rowstore.Recount{}, err
	}
	from, err := s.source(ctx)
	if err != nil {
		return rowstore.Recount{}, err
	}
	type group struct {
		outcome                uint8
		price                  string
		pages, items, quantity uint64
	}
	groups, err := read(ctx, s, fmt.Sprintf(`SELECT outcome, price, count(), sum(items), sum(quantity) FROM (
		SELECT outcome, price, items, quantity FROM %s WHERE %s AND kind = 0
		ORDER BY seq, page, _block_number, pos LIMIT 1 BY seq, page) GROUP BY outcome, price`, from.from, where),
		func(rows driver.Rows) (g group, err error) {
			err = rows.Scan(&g.outcome, &g.price, &g.pages, &g.items, &g.quantity)
			return g, err
		})
	if err != nil {
		return rowstore.Recount{}, fmt.Errorf("row store: recount %s: %w", job, err)
	}
	if noted, condensed, err := s.noted(ctx, job); err != nil || condensed {
		return noted, err // the records may have gone during the read
	}
	for _, g := range groups {
		switch model.Outcome(g.outcome) {
		case model.Delivered:
			sum.Delivered += g.pages
			sum.Items += g.items
			sum.Quantity[g.price] += g.quantity
		case model.Errored:
			sum.Errored += g.pages
		}
	}
	return sum, nil
}

// ofJob returns the condition that finds a job's records and rows by the primary key.
func (s *Store) ofJob(ctx context.Context, job ids.ID) (string, error) {
	h, err := s.home(ctx, job)
	if err != nil || h == (home{}) {
		return `0`, err
	}
	return fmt.Sprintf(`grp = %s AND scraper = %s AND job = %s`, id(h.group), id(h.scraper),
		id(job)), nil
}

// home returns a job's home; zero: the job is unknown, or was sealed without a page.
func (s *Store) home(ctx context.Context, job ids.ID) (home, error) {
	if h, known := s.jobs.Get(job); known {
		return h, nil
	}
	homes, err := read(ctx, s,
		`SELECT max(grp), max(scraper) FROM `+s.table("jobs")+` WHERE job = `+id(job)+
			` GROUP BY job`,
		func(rows driver.Rows) (home, error) {
			var group, scraper string
			if err := rows.Scan(&group, &scraper); err != nil {
				return home{}, err
			}
			return home{ids.ID([]byte(group)), ids.ID([]byte(scraper))}, nil
		})
	if err != nil {
		return home{}, fmt.Errorf("job %s: %w", job, err)
	}
	if len(homes) == 0 || homes[0] == (home{}) {
		return home{}, nil
	}
	s.jobs.Add(job, homes[0])
	return homes[0], nil
}
