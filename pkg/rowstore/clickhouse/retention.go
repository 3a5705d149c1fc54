package clickhouse

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

const (
	sumColumns     = `job, noted, sum`
	chargedColumns = `scraper, job, part, hashes`
)

var (
	sumTypes     = typed(sumColumns, "FixedString(12)", "Int64", "String")
	chargedTypes = typed(chargedColumns, "FixedString(12)", "FixedString(12)", "UInt32", "String")
)

// Expiring implements rowstore.Retention. A database without weeks keeps its records.
func (s *Store) Expiring(ctx context.Context, before time.Time, most int) ([]rowstore.Job, error) {
	l, err := s.layout(ctx)
	if err != nil || !l.weekly {
		return nil, err
	}
	recorded := ``
	for _, table := range s.tables(l) {
		if recorded != `` {
			recorded += ` UNION ALL `
		}
		recorded += fmt.Sprintf(`SELECT job FROM %s WHERE kind = 0 AND started < %d`, table.from,
			before.UnixMicro())
	}
	jobs, err := read(ctx, s, fmt.Sprintf(`SELECT job, max(customer), max(grp), max(scraper), max(started) AS begun
		FROM %s WHERE job IN (%s) AND job NOT IN (SELECT job FROM %s) GROUP BY job HAVING begun < %d AND max(sealed) = 1
		ORDER BY begun, job LIMIT %d`, s.table("jobs"), recorded, s.table("sums"),
		before.UnixMicro(), most), scanJob)
	if err != nil {
		return nil, fmt.Errorf("row store: jobs that expire: %w", err)
	}
	return jobs, nil
}

// Holding implements rowstore.Retention.
func (s *Store) Holding(ctx context.Context, scope rowstore.Scope, most int) ([]ids.ID, error) {
	from, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := read(ctx, s, fmt.Sprintf(`SELECT DISTINCT job FROM %s WHERE %s AND kind = 1 LIMIT %d`,
		from.from, printScope(scope), most), func(rows driver.Rows) (job ids.ID, err error) {
		var id string
		err = rows.Scan(&id)
		copy(job[:], id)
		return job, err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: jobs that have rows: %w", err)
	}
	return jobs, nil
}

// KeepCharged implements rowstore.Retention.
func (s *Store) KeepCharged(ctx context.Context, kept rowstore.Kept) error {
	there, err := past(ctx, s, fmt.Sprintf(`SELECT 1 FROM %s WHERE scraper = %s AND job = %s AND part = %d LIMIT 1`,
		s.table("charged"), id(kept.Scraper), id(kept.Job), kept.Part), scanOne)
	if err == nil && len(there) > 0 {
		return nil // a late owner may have read only some of the records
	}
	if err != nil {
		return fmt.Errorf("row store: keep what %s was charged for: %w", kept.Job, err)
	}
	err = s.fill(ctx, "charged", chargedColumns, chargedTypes, 1, func(int) []any {
		return []any{kept.Scraper[:], kept.Job[:], kept.Part, record.PackHashes(kept.Hashes)}
	})
	if err != nil {
		return fmt.Errorf("row store: keep what %s was charged for: %w", kept.Job, err)
	}
	return nil
}

// EachCharged implements rowstore.Retention. It holds one part at a time.
func (s *Store) EachCharged(ctx context.Context, scraper ids.ID,
	visit func(hashes []uint64) error) error {
	type place struct {
		job  ids.ID
		part uint32
	}
	places, err := past(ctx, s, `SELECT DISTINCT job, part FROM `+s.table("charged")+
		` WHERE scraper = `+id(scraper), func(rows driver.Rows) (p place, err error) {
		var job string
		err = rows.Scan(&job, &p.part)
		copy(p.job[:], job)
		return p, err
	})
	for i := 0; i < len(places) && err == nil; i++ {
		var packed []string
		packed, err = read(ctx, s, fmt.Sprintf(`SELECT hashes FROM %s WHERE scraper = %s AND job = %s
			AND part = %d LIMIT 1`, s.table("charged"), id(scraper), id(places[i].job), places[i].part),
			func(rows driver.Rows) (hashes string, err error) { return hashes, rows.Scan(&hashes) })
		for _, one := range packed {
			var hashes []uint64
			if hashes, err = record.UnpackHashes([]byte(one)); err == nil {
				err = visit(hashes)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("row store: what scraper %s was charged for: %w", scraper, err)
	}
	return nil
}

// Condense implements rowstore.Retention.
func (s *Store) Condense(ctx context.Context, job ids.ID, sum rowstore.Recount,
	at time.Time) error {
	encoded, err := record.EncodeSum(sum)
	condensed := false
	if err == nil {
		_, condensed, err = s.noted(ctx, job)
	}
	if err == nil && !condensed { // a late owner may find no records any more
		err = s.fill(ctx, "sums", sumColumns, sumTypes, 1,
			func(int) []any { return []any{job[:], at.UnixMilli(), encoded} })
	}
	if err != nil {
		return fmt.Errorf("row store: condense %s: %w", job, err)
	}
	return nil
}

// noted returns the sum of a condensed job.
func (s *Store) noted(ctx context.Context, job ids.ID) (sum rowstore.Recount, condensed bool,
	err error) {
	l, err := s.layout(ctx)
	if err != nil || !l.weekly {
		return sum, false, err
	}
	found, err := read(ctx, s, `SELECT sum FROM `+s.table("sums")+` WHERE job = `+id(job)+` ORDER BY noted LIMIT 1`,
		func(rows driver.Rows) (encoded string, err error) { return encoded, rows.Scan(&encoded) })
	if err != nil || len(found) == 0 {
		return sum, false, err
	}
	sum, err = record.DecodeSum([]byte(found[0]))
	return sum, true, err
}

// scanOne scans a row whose mere existence counts.
func scanOne(driver.Rows) (struct{}, error) { return struct{}{}, nil }

// dropKept removes what Retention keeps of a job's records.
func (s *Store) dropKept(ctx context.Context, l layout, job ids.ID) error {
	if !l.weekly {
		return nil
	}
	if err := s.exec(ctx, removeTimeout,
		`DELETE FROM `+s.table("sums")+` WHERE job = `+id(job)); err != nil {
		return err
	}
	return s.dropCharged(ctx, job)
}

// Expire implements rowstore.Retention. It drops a partition once everything in it is old and the
// jobs of all its records are condensed. The partition with the newest block stays, since the
// server numbers on from it. Leftovers of dropped lists go, too.
func (s *Store) Expire(ctx context.Context, before time.Time) error {
	l, err := s.layout(ctx)
	if err != nil {
		return err
	}
	if l.weekly {
		tables := s.tables(l)
		for i, table := range tables {
			if err := s.expireParts(ctx, table, before, i+1 < len(tables)); err != nil {
				return fmt.Errorf("row store: expire rows: %w", err)
			}
		}
		if err := s.leaveRows(ctx, l); err != nil {
			return fmt.Errorf("row store: expire rows: %w", err)
		}
	}
	oldest := ids.ID{}
	binary.BigEndian.PutUint32(oldest[:], uint32(max(0, before.Unix())))
	old := fmt.Sprintf(`list < %s AND list IN (SELECT list FROM %s WHERE state = %d)`,
		id(oldest), s.table("lists"), listDropped)
	if err := s.removeIfAny(ctx, "lists", old); err != nil {
		return fmt.Errorf("row store: expire lists: %w", err)
	}
	return nil
}

// partition is a partition of a table of records and rows.
type partition struct {
	id    string
	block int64 // newest block
}

// end returns the time before which all its jobs started. Its id is a month, or a week's first day.
func (p partition) end() (time.Time, error) {
	if len(p.id) == len("200601") {
		month, err := time.Parse("200601", p.id)
		return month.AddDate(0, 1, 0), err
	}
	week, err := time.Parse("20060102", p.id)
	return week.AddDate(0, 0, 7), err
}

// expireParts drops the partitions of a table whose jobs all started before a time. The newest one
// stays, unless over says that nothing more is inserted into the table.
func (s *Store) expireParts(ctx context.Context, table source, before time.Time, over bool) error {
	parts, err := read(ctx, s, `SELECT partition_id, max(max_block_number) AS newest FROM system.parts
		WHERE active AND database = `+text(s.db)+` AND table = `+text(table.name)+`
		GROUP BY partition_id ORDER BY newest`,
		func(rows driver.Rows) (p partition, err error) { return p, rows.Scan(&p.id, &p.block) })
	if err != nil {
		return err
	}
	for i, part := range parts {
		end, err := part.end()
		if err != nil {
			return fmt.Errorf("partition %q: %w", part.id, err)
		}
		if end.After(before) || !over && i+1 == len(parts) {
			continue
		}
		records := fmt.Sprintf(`FROM %s WHERE _partition_id = %s AND kind = 0`, table.from, text(part.id))
		held, err := read(ctx, s, fmt.Sprintf(`SELECT 1 %s AND job NOT IN
			(SELECT job FROM %s WHERE job IN (SELECT job %[1]s)) LIMIT 1`, records, s.table("sums")),
			scanOne)
		if err != nil {
			return err
		}
		if len(held) > 0 {
			continue
		}
		s.point("rowstore.before_drop_part")
		if err := s.exec(ctx, removeTimeout,
			`ALTER TABLE `+table.from+` DROP PARTITION ID `+text(part.id)); err != nil {
			return err
		}
	}
	return nil
}

// leaveRows notes that the table rows is empty. Other processes notice within a minute.
func (s *Store) leaveRows(ctx context.Context, l layout) error {
	if !l.old {
		return nil
	}
	left, err := read(ctx, s, `SELECT sum(rows) FROM system.parts WHERE active AND database = `+
		text(s.db)+` AND table = 'rows'`, scanBlock)
	if err != nil || left[0] > 0 {
		return err
	}
	l.old = false
	if err := s.exec(ctx, callTimeout, `ALTER TABLE `+s.table("weeks")+` MODIFY COMMENT `+
		text(l.mark())); err != nil {
		return err
	}
	s.known.Store(&l)
	return nil
}

// removeIfAny physically removes matching rows, if there are any, and waits until it is done.
func (s *Store) removeIfAny(ctx context.Context, table, where string) error {
	found, err := read(ctx, s, `SELECT 1 FROM `+s.table(table)+` WHERE `+where+` LIMIT 1`,
		scanOne)
	if err != nil || len(found) == 0 {
		return err
	}
	return s.exec(ctx, removeTimeout,
		`ALTER TABLE `+s.table(table)+` DELETE WHERE `+where+` SETTINGS mutations_sync = 1`)
}
