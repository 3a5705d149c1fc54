package sqlite

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// JobsOf implements rowstore.Retention. It reads all jobs after the id: it is rarely called.
func (s *Store) JobsOf(ctx context.Context, customer string, after ids.ID,
	most int) ([]rowstore.Job, error) {
	rows, err := s.loop.QueryContext(ctx, selectJobs+`
		WHERE job > ? AND customer = ?
			AND (EXISTS (SELECT 1 FROM spans WHERE spans.job = jobs.id)
			OR EXISTS (SELECT 1 FROM pages WHERE pages.job = jobs.id)
			OR EXISTS (SELECT 1 FROM charged WHERE charged.scraper = jobs.scraper
				AND charged.job = jobs.job))
		ORDER BY job`+limit, after[:], customer, most)
	jobs, err := scanJobs(rows, err)
	if err != nil {
		return nil, fmt.Errorf("row store: jobs of a customer: %w", err)
	}
	return jobs, nil
}

// EraseJob implements rowstore.Retention. Each turn of the writer removes a bounded number.
func (s *Store) EraseJob(ctx context.Context, job ids.ID) error {
	for _, turn := range []func(job int64) (more bool, err error){s.writer.deleteSpan,
		s.writer.deleteRecords, s.writer.deleteCharged} {
		if err := s.deleteBy(ctx, job, turn); err != nil {
			return err
		}
	}
	return nil
}
