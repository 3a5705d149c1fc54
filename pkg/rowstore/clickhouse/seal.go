package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of the wait for inserts that began before a fence.
const (
	fencePause  = 10 * time.Millisecond
	fencePauses = 9 // times it doubles
)

// removeAtOnce bounds the records that one removal names.
const removeAtOnce = 20_000

// Seal is rowstore.Pages. The fence holds from its first step on, even if a later one fails: then Seal is to be called
// again.
func (s *Store) Seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error {
	if err := s.seal(ctx, job, settled); err != nil {
		return fmt.Errorf("row store: seal %s: %w", job, err)
	}
	return nil
}

func (s *Store) seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error {
	// Whoever looks from now on sees that the job is sealed; whoever has looked is kept out by the fence.
	for _, statement := range []string{
		`INSERT INTO ` + s.table("jobs") + ` (job, sealed) VALUES (` + id(job) + `, 1)`,
		`INSERT INTO ` + s.table("fences") + ` (job) VALUES (` + id(job) + `)`,
	} {
		if err := s.exec(ctx, callTimeout, statement); err != nil {
			return err
		}
	}
	s.point("rowstore.after_fence")
	if err := s.drain(ctx); err != nil {
		return err
	}
	if settled == nil {
		return s.removeLate(ctx, job)
	}
	return s.removeUnsettled(ctx, job, settled)
}

// drain waits until every insert of pages that is under way has ended: it may have asked for the fences before there was
// the newest. One that begins now sees it.
func (s *Store) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	open, err := s.inserts(ctx, nil)
	for pause := 0; err == nil && len(open) > 0; pause++ {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for inserts: %w", ctx.Err())
		case <-s.clock.After(fencePause << min(pause, fencePauses)):
		}
		open, err = s.inserts(ctx, open)
	}
	return err
}

// inserts returns the ids of the inserts of pages under way; of those that are named, if any are.
func (s *Store) inserts(ctx context.Context, named []string) ([]string, error) {
	among := ``
	if len(named) > 0 {
		among = ` AND query_id IN (` + join(named, text) + `)`
	}
	open, err := read(ctx, s, `SELECT query_id FROM system.processes WHERE startsWith(query, `+text(`INSERT INTO `+s.table("intake"))+`)`+
		among, func(rows driver.Rows) (id string, err error) {
		err = rows.Scan(&id)
		return id, err
	})
	if err != nil {
		return nil, fmt.Errorf("inserts under way: %w", err)
	}
	return open, nil
}

// mark is what Seal reads of a record.
type mark struct {
	unit  model.Unit
	block uint64
	last  bool
}

// removeLate removes what lost against another record of its unit: of a job with its fence up this is final.
func (s *Store) removeLate(ctx context.Context, job ids.ID) error {
	where, err := s.ofJob(ctx, job)
	if err != nil {
		return err
	}
	twice, err := read(ctx, s, fmt.Sprintf(`SELECT seq, page, arrayJoin(arrayPopFront(arraySort(groupArray(_block_number)))) FROM %s
		WHERE %s AND kind = 0 GROUP BY seq, page HAVING count() > 1`, s.table("rows"), where), scanMark)
	if err != nil {
		return fmt.Errorf("units with two records: %w", err)
	}
	return s.removeMarks(ctx, job, twice)
}

func scanMark(rows driver.Rows) (m mark, err error) {
	err = rows.Scan(&m.unit.Seq, &m.unit.Page, &m.block)
	return m, err
}

// removeUnsettled asks about every record that stands, and removes it if it is not settled, and what lost in any case.
func (s *Store) removeUnsettled(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error {
	where, err := s.ofJob(ctx, job)
	if err != nil {
		return err
	}
	var gone []mark
	for after := (*model.Unit)(nil); ; {
		marks, err := read(ctx, s, fmt.Sprintf(`SELECT seq, page, _block_number, last FROM %s WHERE %s AND kind = 0 AND %s
			ORDER BY seq, page, _block_number LIMIT %d WITH TIES`, s.table("rows"), where, afterUnit(after), recordsAtOnce),
			func(rows driver.Rows) (m mark, err error) {
				var last uint8
				err = rows.Scan(&m.unit.Seq, &m.unit.Page, &m.block, &last)
				m.last = last == 1
				return m, err
			})
		if err != nil {
			return fmt.Errorf("records: %w", err)
		}
		for i := range marks {
			if m := marks[i]; after != nil && m.unit == *after || !settled(m.unit, m.last) {
				gone = append(gone, m)
			}
			after = &marks[i].unit
		}
		if len(marks) < recordsAtOnce {
			return s.removeMarks(ctx, job, gone)
		}
	}
}

func (s *Store) removeMarks(ctx context.Context, job ids.ID, marks []mark) error {
	where, err := s.ofJob(ctx, job)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(marks, removeAtOnce) {
		tuples := join(part, func(m mark) string { return fmt.Sprintf("(%d,%d,%d)", m.unit.Seq, m.unit.Page, m.block) })
		err := s.exec(ctx, removeTimeout, `DELETE FROM `+s.table("rows")+` WHERE `+where+` AND (seq, page, _block_number) IN (`+tuples+`)`)
		if err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}

// DeleteJob is rowstore.Pages. The job stays known as sealed or not.
func (s *Store) DeleteJob(ctx context.Context, job ids.ID, records bool) error {
	where, err := s.ofJob(ctx, job)
	if err == nil && where != `0` {
		if !records {
			where += ` AND kind = 1`
		}
		err = s.exec(ctx, removeTimeout, `DELETE FROM `+s.table("rows")+` WHERE `+where)
	}
	if err != nil {
		return fmt.Errorf("row store: delete %s: %w", job, err)
	}
	return nil
}

// Expire is rowstore.Pages.
func (s *Store) Expire(ctx context.Context, before time.Time) error {
	where := fmt.Sprintf(`kind = 1 AND started < %d`, before.UnixMicro())
	any, err := read(ctx, s, `SELECT 1 FROM `+s.table("rows")+` WHERE `+where+` LIMIT 1`,
		func(driver.Rows) (struct{}, error) { return struct{}{}, nil })
	if err == nil && len(any) > 0 {
		err = s.exec(ctx, removeTimeout, `ALTER TABLE `+s.table("rows")+` DELETE WHERE `+where+` SETTINGS mutations_sync = 1`)
	}
	if err != nil {
		return fmt.Errorf("row store: expire rows: %w", err)
	}
	return nil
}

var _ rowstore.Pages = (*Store)(nil)
