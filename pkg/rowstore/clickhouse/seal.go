package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/rowstore"
)

// fencePauses are the pauses between looks for inserts that began before a fence.
var fencePauses = retry.Backoff{First: 10 * time.Millisecond, Most: 5120 * time.Millisecond}

// removeAtOnce is the most records that one removal names.
const removeAtOnce = 20_000

// Seal implements rowstore.Pages. The fence holds from the first step on, even if a later step
// fails: then call Seal again.
func (s *Store) Seal(ctx context.Context, job ids.ID,
	settled func(unit model.Unit, last bool) bool) error {
	if err := s.seal(ctx, job, settled); err != nil {
		return fmt.Errorf("row store: seal %s: %w", job, err)
	}
	return nil
}

func (s *Store) seal(ctx context.Context, job ids.ID,
	settled func(unit model.Unit, last bool) bool) error {
	// Whoever looks from now on sees that the job is sealed. The fence keeps out whoever looked
	// before.
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
	if err := s.removeLate(ctx, job); err != nil || settled == nil {
		return err
	}
	return s.removeUnsettled(ctx, job, settled)
}

// Sealed implements rowstore.Pages.
func (s *Store) Sealed(ctx context.Context, job ids.ID) (bool, error) {
	found, err := read(ctx, s,
		`SELECT 1 FROM `+s.table("jobs")+` WHERE job = `+id(job)+` AND sealed = 1 LIMIT 1`,
		scanOne)
	if err != nil {
		return false, fmt.Errorf("row store: whether %s is sealed: %w", job, err)
	}
	return len(found) > 0, nil
}

// drain waits until all inserts of pages under way have ended: they may have read the fences before
// the newest one. Inserts that begin now see it.
func (s *Store) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	open, err := s.inserts(ctx, nil)
	for looks := 1; err == nil && len(open) > 0; looks++ {
		if !fencePauses.Wait(ctx, s.clock, looks) {
			return fmt.Errorf("wait for inserts: %w", ctx.Err())
		}
		open, err = s.inserts(ctx, open)
	}
	return err
}

// inserts returns the ids of the inserts of pages under way; with named, only of those.
func (s *Store) inserts(ctx context.Context, named []string) ([]string, error) {
	among := ``
	if len(named) > 0 {
		among = ` AND query_id IN (` + join(named, text) + `)`
	}
	prefix := text(`INSERT INTO ` + s.table("intake"))
	open, err := read(ctx, s, `SELECT query_id FROM system.processes WHERE startsWith(query, `+
		prefix+`)`+among, func(rows driver.Rows) (id string, err error) {
		err = rows.Scan(&id)
		return id, err
	})
	if err != nil {
		return nil, fmt.Errorf("inserts under way: %w", err)
	}
	return open, nil
}

// mark names a record.
type mark struct {
	unit  model.Unit
	block uint64
	last  bool
}

// removeLate removes records that lost against another record of their unit. Once the job's fence
// is up, this is final.
func (s *Store) removeLate(ctx context.Context, job ids.ID) error {
	where, err := s.ofJob(ctx, job)
	if err != nil {
		return err
	}
	from, err := s.source(ctx)
	if err != nil {
		return err
	}
	twice, err := read(ctx, s, fmt.Sprintf(`SELECT seq, page, arrayJoin(arrayPopFront(arraySort(groupArray(_block_number))))
		FROM %s WHERE %s AND kind = 0 GROUP BY seq, page HAVING count() > 1`, from.from, where), from.scanMark)
	if err != nil {
		return fmt.Errorf("units with two records: %w", err)
	}
	return s.remove(ctx, job, twice)
}

func (from source) scanMark(rows driver.Rows) (m mark, err error) {
	err = rows.Scan(&m.unit.Seq, &m.unit.Page, &m.block)
	m.block += from.base
	return m, err
}

// removeUnsettled asks settled about every record of a job, one per unit, and removes those that
// are not settled.
func (s *Store) removeUnsettled(ctx context.Context, job ids.ID,
	settled func(unit model.Unit, last bool) bool) error {
	where, err := s.ofJob(ctx, job)
	if err != nil {
		return err
	}
	from, err := s.source(ctx)
	if err != nil {
		return err
	}
	var gone []mark
	for after := (*model.Unit)(nil); ; {
		marks, err := read(ctx, s, fmt.Sprintf(`SELECT seq, page, _block_number, last FROM %s WHERE %s AND kind = 0 AND %s
			ORDER BY seq, page LIMIT %d`, from.from, where, afterUnit(after), recordsAtOnce),
			func(rows driver.Rows) (m mark, err error) {
				var last uint8
				err = rows.Scan(&m.unit.Seq, &m.unit.Page, &m.block, &last)
				m.block, m.last = m.block+from.base, last == 1
				return m, err
			})
		if err != nil {
			return fmt.Errorf("records: %w", err)
		}
		for i := range marks {
			if !settled(marks[i].unit, marks[i].last) {
				gone = append(gone, marks[i])
			}
			after = &marks[i].unit
		}
		if len(marks) < recordsAtOnce {
			return s.remove(ctx, job, gone)
		}
	}
}

// remove removes records with their rows.
func (s *Store) remove(ctx context.Context, job ids.ID, records []mark) error {
	where, err := s.ofJob(ctx, job)
	if err != nil || len(records) == 0 {
		return err
	}
	l, err := s.layout(ctx)
	if err != nil {
		return err
	}
	for _, table := range s.tables(l) {
		for part := range slices.Chunk(records, removeAtOnce) {
			units := join(part, func(m mark) string {
				if m.block < table.base { // it is in the other table
					return `(0,0,0)` // matches no block
				}
				return fmt.Sprintf("(%d,%d,%d)", m.unit.Seq, m.unit.Page, m.block-table.base)
			})
			err := s.exec(ctx, removeTimeout, `DELETE FROM `+table.from+` WHERE `+where+
				` AND (seq, page, _block_number) IN (`+units+`)`)
			if err != nil {
				return fmt.Errorf("remove: %w", err)
			}
		}
	}
	return nil
}

// DeleteJob implements rowstore.Pages. The job stays known as sealed or not.
func (s *Store) DeleteJob(ctx context.Context, job ids.ID, records bool) error {
	if err := s.deleteJob(ctx, job, records); err != nil {
		return fmt.Errorf("row store: delete %s: %w", job, err)
	}
	return nil
}

func (s *Store) deleteJob(ctx context.Context, job ids.ID, records bool) error {
	where, err := s.ofJob(ctx, job)
	if err != nil || where == `0` {
		return err
	}
	l, err := s.layout(ctx)
	if err != nil {
		return err
	}
	if records {
		if err := s.dropKept(ctx, l, job); err != nil {
			return err
		}
	} else {
		where += ` AND kind = 1`
	}
	for _, table := range s.tables(l) {
		err := s.exec(ctx, removeTimeout, `DELETE FROM `+table.from+` WHERE `+where)
		if err != nil {
			return err
		}
	}
	return nil
}

// JobsSince implements rowstore.Pages.
func (s *Store) JobsSince(ctx context.Context, started int64,
	visit func(rowstore.Job) error) error {
	jobs, err := read(ctx, s, fmt.Sprintf(`SELECT job, max(customer) AS whose, max(grp), max(scraper), max(started) AS begun FROM %s
		GROUP BY job HAVING begun >= %d AND whose <> ''`, s.table("jobs"), started), scanJob)
	if err != nil {
		return fmt.Errorf("row store: jobs of late: %w", err)
	}
	for _, job := range jobs {
		if err := visit(job); err != nil {
			return fmt.Errorf("row store: jobs of late: %w", err)
		}
	}
	return nil
}

func scanJob(rows driver.Rows) (job rowstore.Job, err error) {
	var id, group, scraper string
	err = rows.Scan(&id, &job.Customer, &group, &scraper, &job.Started)
	copy(job.ID[:], id)
	copy(job.Group[:], group)
	copy(job.Scraper[:], scraper)
	return job, err
}
