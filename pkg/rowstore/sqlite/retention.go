package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

// retentionSchema is outside the schema versions, like the archive's.
const retentionSchema = `
-- The sums of page records that may go, or have gone.
CREATE TABLE IF NOT EXISTS sums (
	job   BLOB NOT NULL PRIMARY KEY,
	noted INTEGER NOT NULL, -- Unix milliseconds
	sum   BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sums_noted ON sums (noted);

-- Hashes of start addresses that were charged, 8 bytes each.
CREATE TABLE IF NOT EXISTS charged (
	scraper BLOB NOT NULL,
	job     BLOB NOT NULL,
	part    INTEGER NOT NULL,
	hashes  BLOB NOT NULL,
	PRIMARY KEY (scraper, job, part)
);
`

// Expiring implements rowstore.Retention.
func (s *Store) Expiring(ctx context.Context, before time.Time, most int) ([]rowstore.Job, error) {
	rows, err := s.loop.QueryContext(ctx, selectJobs+`
		WHERE started < ? AND sealed = 1 AND EXISTS (SELECT 1 FROM pages WHERE pages.job = jobs.id)
			AND NOT EXISTS (SELECT 1 FROM sums WHERE sums.job = jobs.job)`+limit,
		before.UnixMicro(), most)
	jobs, err := scanJobs(rows, err)
	if err != nil {
		return nil, fmt.Errorf("row store: jobs that expire: %w", err)
	}
	return jobs, nil
}

// Holding implements rowstore.Retention.
func (s *Store) Holding(ctx context.Context, scope rowstore.Scope, most int) ([]ids.ID, error) {
	within, args := scopeJobs(scope)
	rows, err := s.loop.QueryContext(ctx, `SELECT jobs.job FROM (`+within+`) AS scope
		CROSS JOIN jobs ON jobs.id = scope.id
		WHERE EXISTS (SELECT 1 FROM spans WHERE spans.job = scope.id)`+limit, append(args, most)...)
	var jobs []ids.ID
	err = each(rows, err, func(rows *sql.Rows) error {
		var id sql.RawBytes
		err := rows.Scan(&id)
		jobs = append(jobs, ids.ID(id))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: jobs that have rows: %w", err)
	}
	return jobs, nil
}

// KeepCharged implements rowstore.Retention.
func (s *Store) KeepCharged(ctx context.Context, kept rowstore.Kept) error {
	err := s.writer.do(ctx, s.writer.bulk, func() error {
		_, err := s.writer.exec(`INSERT OR IGNORE INTO charged (scraper, job, part, hashes)
			VALUES (?, ?, ?, ?)`, kept.Scraper[:], kept.Job[:], kept.Part,
			record.PackHashes(kept.Hashes))
		return err
	})
	if err != nil {
		return fmt.Errorf("row store: keep what %s was charged for: %w", kept.Job, err)
	}
	return nil
}

// EachCharged implements rowstore.Retention.
func (s *Store) EachCharged(ctx context.Context, scraper ids.ID,
	visit func(hashes []uint64) error) error {
	rows, err := s.loop.QueryContext(ctx, `SELECT hashes FROM charged WHERE scraper = ?`,
		scraper[:])
	err = each(rows, err, func(rows *sql.Rows) error {
		var packed sql.RawBytes
		if err := rows.Scan(&packed); err != nil {
			return err
		}
		hashes, err := record.UnpackHashes(packed)
		if err != nil {
			return err
		}
		return visit(hashes)
	})
	if err != nil {
		return fmt.Errorf("row store: what scraper %s was charged for: %w", scraper, err)
	}
	return nil
}

// Condense implements rowstore.Retention.
func (s *Store) Condense(ctx context.Context, job ids.ID, sum rowstore.Recount,
	at time.Time) error {
	encoded, err := record.EncodeSum(sum)
	if err == nil {
		err = s.writer.do(ctx, s.writer.bulk, func() error {
			_, err := s.writer.exec(`INSERT OR IGNORE INTO sums (job, noted, sum) VALUES (?, ?, ?)`,
				job[:], at.UnixMilli(), encoded)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("row store: condense %s: %w", job, err)
	}
	return nil
}

// noted returns the sum of a condensed job.
func (s *Store) noted(ctx context.Context, job ids.ID) (sum rowstore.Recount, condensed bool,
	err error) {
	rows, err := s.loop.QueryContext(ctx, `SELECT sum FROM sums WHERE job = ?`, job[:])
	err = each(rows, err, func(rows *sql.Rows) error {
		var encoded sql.RawBytes
		err := rows.Scan(&encoded)
		if err == nil {
			sum, err = record.DecodeSum(encoded)
		}
		condensed = true
		return err
	})
	return sum, condensed, err
}

// Expire implements rowstore.Retention. It goes job by job, then gives the space back to the disk.
func (s *Store) Expire(ctx context.Context, before time.Time) error {
	for _, step := range []struct {
		which string
		turn  func(job int64) (more bool, err error)
	}{
		{`EXISTS (SELECT 1 FROM spans WHERE spans.job = jobs.id)`, s.writer.deleteSpan},
		{`EXISTS (SELECT 1 FROM pages WHERE pages.job = jobs.id)
			AND EXISTS (SELECT 1 FROM sums WHERE sums.job = jobs.job)`, s.writer.deleteRecords},
	} {
		var jobs []ids.ID
		rows, err := s.loop.QueryContext(ctx,
			`SELECT job FROM jobs WHERE started < ? AND `+step.which, before.UnixMicro())
		err = each(rows, err, func(rows *sql.Rows) error {
			var id sql.RawBytes
			err := rows.Scan(&id)
			jobs = append(jobs, ids.ID(id))
			return err
		})
		if err != nil {
			return fmt.Errorf("row store: expired jobs: %w", err)
		}
		for _, job := range jobs {
			if err := s.deleteBy(ctx, job, step.turn); err != nil {
				return err
			}
		}
	}
	return s.shrink(ctx)
}
