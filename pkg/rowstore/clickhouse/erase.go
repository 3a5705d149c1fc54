package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// errNoSums is the error for a database that cannot keep sums yet: erasing would lose what the
// recount needs.
var errNoSums = errors.New("the database is being upgraded, and has no sums yet")

// JobsOf implements rowstore.Retention.
func (s *Store) JobsOf(ctx context.Context, customer string, after ids.ID,
	most int) ([]rowstore.Job, error) {
	l, err := s.layout(ctx)
	if err == nil && !l.weekly {
		err = errNoSums
	}
	if err != nil {
		return nil, fmt.Errorf("row store: jobs of a customer: %w", err)
	}
	mine := fmt.Sprintf(`FROM %s WHERE customer = %s AND job > %s`, s.table("jobs"),
		text(customer), id(after))
	left := []string{fmt.Sprintf(`SELECT job FROM %s WHERE job IN (SELECT job %s)`,
		s.table("charged"), mine)}
	for _, table := range s.tables(l) {
		left = append(left, fmt.Sprintf(`SELECT job FROM %s WHERE grp IN (SELECT grp %s)
			AND job IN (SELECT job %[2]s)`, table.from, mine))
	}
	jobs, err := read(ctx, s, fmt.Sprintf(`SELECT job, max(customer) AS whose, max(grp), max(scraper), max(started)
		FROM %s WHERE job IN (%s) GROUP BY job HAVING whose = %s ORDER BY job LIMIT %d`,
		s.table("jobs"), strings.Join(left, ` UNION ALL `), text(customer), most), scanJob)
	if err != nil {
		return nil, fmt.Errorf("row store: jobs of a customer: %w", err)
	}
	return jobs, nil
}

// EraseJob implements rowstore.Retention.
func (s *Store) EraseJob(ctx context.Context, job ids.ID) error {
	if err := s.eraseJob(ctx, job); err != nil {
		return fmt.Errorf("row store: erase %s: %w", job, err)
	}
	return nil
}

func (s *Store) eraseJob(ctx context.Context, job ids.ID) error {
	where, err := s.ofJob(ctx, job)
	if err != nil || where == `0` {
		return err
	}
	l, err := s.layout(ctx)
	if err != nil {
		return err
	}
	if !l.weekly {
		return errNoSums
	}
	for _, table := range s.tables(l) {
		if err := s.exec(ctx, removeTimeout, `DELETE FROM `+table.from+` WHERE `+where); err != nil {
			return err
		}
	}
	return s.dropCharged(ctx, job)
}

// dropCharged removes the hashes of the addresses that a job was charged for.
func (s *Store) dropCharged(ctx context.Context, job ids.ID) error {
	home, err := s.home(ctx, job)
	if err != nil {
		return err
	}
	return s.exec(ctx, removeTimeout, `DELETE FROM `+s.table("charged")+` WHERE scraper = `+
		id(home.scraper)+` AND job = `+id(job))
}
