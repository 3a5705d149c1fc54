package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// countsSchema keeps counts of the archive's runs without trials: every page of the history shows
// how many runs there are.
const countsSchema = `
CREATE TABLE past_counts (
	customer   TEXT NOT NULL,
	generation BLOB NOT NULL,
	grp        BLOB NOT NULL,
	scraper    BLOB NOT NULL,
	state      TEXT NOT NULL,
	runs       INTEGER NOT NULL,
	PRIMARY KEY (customer, generation, grp, scraper, state)
) WITHOUT ROWID;
CREATE INDEX past_counts_nothing ON past_counts (runs) WHERE runs = 0;
INSERT INTO past_counts SELECT customer, generation, grp, scraper, state, count(*)
	FROM past_runs WHERE trial = 0 GROUP BY customer, generation, grp, scraper, state;
`

// expiredRuns selects the next runs to remove: at most ?2 that finished before ?1.
const expiredRuns = `SELECT id, generation FROM past_runs WHERE finished < ?1
	ORDER BY finished, id, generation LIMIT ?2`

const (
	// uncountExpired subtracts expiredRuns from the counts, before they are removed.
	uncountExpired = `INSERT INTO past_counts
		SELECT customer, generation, grp, scraper, state, -count(*) FROM past_runs
		WHERE trial = 0 AND (id, generation) IN (` + expiredRuns + `)
		GROUP BY customer, generation, grp, scraper, state
		ON CONFLICT DO UPDATE SET runs = runs + excluded.runs`
	forgetCounts = `DELETE FROM past_counts WHERE runs = 0`
)

// counted is the key under which runs are counted.
type counted struct {
	customer   string
	generation ids.ID
	rowstore.PastKind
}

// count adds runs that are stored in the same turn to the counts.
func (w *writer) count(added map[counted]int64) error {
	for of, runs := range added {
		if runs == 0 {
			continue // all were stored already
		}
		if _, err := w.exec(`INSERT INTO past_counts VALUES (?,?,?,?,?,?)
			ON CONFLICT DO UPDATE SET runs = runs + excluded.runs`, of.customer, of.generation[:],
			of.Group[:], of.Scraper[:], of.State, runs); err != nil {
			return fmt.Errorf("count runs: %w", err)
		}
	}
	return nil
}

// past_counts counts all runs of a generation, so those beyond the path's step are subtracted. They
// are few: what the state is about to drop, and what a restore has undone.
const (
	countedWhole = `SELECT grp, scraper, state, runs FROM past_counts
		WHERE customer = ? AND generation = ?`
	countedBehind = `SELECT grp, scraper, state, -count(*) AS runs FROM past_runs
		WHERE customer = ? AND trial = 0 AND generation = ? AND sealed > ?
		GROUP BY grp, scraper, state`
)

// countPast returns the statement that counts, with its arguments.
func countPast(path rowstore.Path, customer string) (text string, args []any) {
	var parts []string
	for _, step := range path {
		parts = append(parts, countedWhole, countedBehind)
		args = append(args, customer, step.Generation[:],
			customer, step.Generation[:], int64(step.Upto))
	}
	return `SELECT grp, scraper, state, sum(runs) FROM (` + strings.Join(parts, ` UNION ALL `) +
		`) GROUP BY grp, scraper, state HAVING sum(runs) > 0`, args
}

// countWithin returns the statement that counts the runs of a span by the index on queued.
func countWithin(path rowstore.Path, customer string, queued rowstore.PastSpan) (text string,
	args []any) {
	where := on(path)
	where.and(`customer = ?`, customer)
	where.and(`trial = 0`)
	where.within(queued)
	return `SELECT grp, scraper, state, count(*) FROM past_runs INDEXED BY past_runs_by_queue
		WHERE ` + where.text.String() + ` GROUP BY grp, scraper, state`, where.args
}

// CountPast implements rowstore.Archive.
func (s *Store) CountPast(ctx context.Context, path rowstore.Path, customer string,
	queued rowstore.PastSpan) ([]rowstore.PastCount, error) {
	if len(path) == 0 {
		return nil, nil
	}
	statement, args := countPast(path, customer)
	if queued != (rowstore.PastSpan{}) {
		statement, args = countWithin(path, customer, queued)
	}
	rows, err := s.reads.QueryContext(ctx, statement, args...)
	var counts []rowstore.PastCount
	err = each(rows, err, func(rows *sql.Rows) error {
		var c rowstore.PastCount
		var group, scraper idColumn
		err := rows.Scan(&group, &scraper, &c.State, &c.Runs)
		c.Group, c.Scraper = ids.ID(group), ids.ID(scraper)
		counts = append(counts, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: count past runs: %w", err)
	}
	return counts, nil
}
