package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Seal implements rowstore.Pages. It finds what to remove on a read connection, while the writer
// already drops the job's pages. So even a huge run is sealed in one short turn. If Seal fails, the
// pages dropped meanwhile are lost, as if the log had lost them.
func (s *Store) Seal(ctx context.Context, job ids.ID,
	settled func(unit model.Unit, last bool) bool) error {
	w := s.writer
	if settled == nil {
		return w.do(ctx, w.pages, func() error { return w.seal(job, nil) })
	}
	if err := w.bare(ctx, w.pages, func() error { w.sealing[job]++; return nil }); err != nil {
		return err
	}
	unsettled, err := s.unsettled(ctx, job, settled)
	// The provisional fence must fall even if ctx has ended.
	return w.bare(context.WithoutCancel(ctx), w.pages, func() error {
		if w.sealing[job]--; w.sealing[job] == 0 {
			delete(w.sealing, job)
		}
		if err != nil {
			return err
		}
		return w.transact(func() error { return w.seal(job, unsettled) })
	})
}

// Sealed implements rowstore.Pages.
func (s *Store) Sealed(ctx context.Context, job ids.ID) (sealed bool, err error) {
	rows, err := s.loop.QueryContext(ctx, `SELECT sealed FROM jobs WHERE job = ?`, job[:])
	if err := each(rows, err, func(rows *sql.Rows) error {
		return rows.Scan(&sealed)
	}); err != nil {
		return false, fmt.Errorf("row store: whether %s is sealed: %w", job, err)
	}
	return sealed, nil
}

// unsettled returns the units of a job's records that are not settled.
func (s *Store) unsettled(ctx context.Context, job ids.ID,
	settled func(model.Unit, bool) bool) ([]model.Unit, error) {
	var units []model.Unit
	err := view(ctx, s.loop, func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx,
			`SELECT unit, last FROM pages WHERE`+ofJob+`ORDER BY unit`, job[:])
		return each(rows, err, func(rows *sql.Rows) error {
			var key int64
			var last bool
			if err := rows.Scan(&key, &last); err != nil {
				return err
			}
			if unit := unitOf(key); !settled(unit, last) {
				units = append(units, unit)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("row store: seal %s: %w", job, err)
	}
	return units, nil
}

// seal sets the fence and removes the records of units and their rows.
func (w *writer) seal(id ids.ID, units []model.Unit) error {
	job, _, err := w.job(rowstore.Job{ID: id})
	if err != nil {
		return err
	}
	if _, err := w.exec(`UPDATE jobs SET sealed = 1 WHERE id = ?`, job); err != nil {
		return err
	}
	for _, unit := range units {
		key := unitKey(unit)
		var first, count int64
		err := w.query(func(rows *sql.Rows) error { return rows.Scan(&first, &count) },
			`SELECT place, items FROM pages WHERE job = ? AND unit = ?`, job, key)
		if err != nil {
			return fmt.Errorf("rows of a record: %w", err)
		}
		removed, err := w.cut(job, first, first+count-1)
		if err != nil {
			return fmt.Errorf("remove rows: %w", err)
		}
		if _, err := w.exec(`DELETE FROM pages WHERE job = ? AND unit = ?`, job, key); err != nil {
			return fmt.Errorf("remove record: %w", err)
		}
		if _, err := w.exec(`UPDATE jobs SET rows = rows - ? WHERE id = ?`, removed,
			job); err != nil {
			return fmt.Errorf("count rows: %w", err)
		}
	}
	return nil
}

// cut removes rows of a job that lie within one span, and cuts their places out of it. Every place
// in a span has a row.
func (w *writer) cut(job, first, last int64) (removed int64, err error) {
	if last < first {
		return 0, nil
	}
	if removed, err = w.exec(`DELETE FROM rows WHERE place BETWEEN ? AND ?`, first,
		last); err != nil {
		return 0, err
	}
	for _, statement := range []string{
		`INSERT INTO spans (job, first, last, at) SELECT job, ?3 + 1, last, at FROM spans
			WHERE job = ?1 AND first <= ?2 AND last > ?3`,
		`DELETE FROM spans WHERE job = ?1 AND first = ?2 AND last >= ?3`,
		`UPDATE spans SET last = ?2 - 1 WHERE job = ?1 AND first < ?2 AND last >= ?3`,
	} {
		if _, err := w.exec(statement, job, first, last); err != nil {
			return 0, err
		}
	}
	return removed, nil
}
