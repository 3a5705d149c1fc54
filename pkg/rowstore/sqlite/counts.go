package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// countsSchema has the archive's runs, without trials, counted: history tells with each page how
// many there are.
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

// expiredRuns are the next runs that go: those that finished before ?1, ?2 at most.
const expiredRuns = `SELECT id, generation FROM past_runs WHERE finished < ?1
	ORDER BY finished, id, generation LIMIT ?2`

const (
	// uncountExpired takes off what expiredRuns are, before they go.
	uncountExpired = `INSERT INTO past_counts
		SELECT customer, generation, grp, scraper, state, -count(*) FROM past_runs
		WHERE trial = 0 AND (id, generation) IN (` + expiredRuns + `)
		GROUP BY customer, generation, grp, scraper, state
		ON CONFLICT DO UPDATE SET runs = runs + excluded.runs`
	forgetCounts = `DELETE FROM past_counts WHERE runs = 0`
)

// counted is what runs are counted by.
type counted struct {
	customer   string
	generation ids.ID
	rowstore.PastKind
}

// count adds runs that are stored in the same turn.
func (w *writer) count(added map[counted]int64) error {
	for of, runs := range added {
		if runs == 0 {
			continue // all were there
		}
		if _, err := w.exec(`INSERT INTO past_counts VALUES (?,?,?,?,?,?)
			ON CONFLICT DO UPDATE SET runs = runs + excluded.runs`, of.customer, of.generation[:],
			of.Group[:], of.Scraper[:], of.State, runs); err != nil {
			return fmt.Errorf("count runs: %w", err)
		}
	}
	return nil
}

// A generation's runs are counted already; those behind a step of the path are taken off. There are
// few: what the state is about to drop, and what a restore has undone.
const (
	countedWhole = `SELECT grp, scraper, state, runs FROM past_counts
		WHERE customer = ? AND generation = ?`
	countedBehind = `SELECT grp, scraper, state, -count(*) AS runs FROM past_runs
		WHERE customer = ? AND trial = 0 AND generation = ? AND sealed > ?
		GROUP BY grp, scraper, state`
)

// countPast is the statement that counts, with its arguments.
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

// countWithin is the statement that counts the runs of a span, by the index that finds them.
func countWithin(path rowstore.Path, customer string, queued rowstore.PastSpan) (text string,
	args []any) {
	where := on(path)
	where.and(`customer = ?`, customer)
	where.and(`trial = 0`)
	where.within(queued)
	return `SELECT grp, scraper, state, count(*) FROM past_runs INDEXED BY past_runs_by_queue
		WHERE ` + where.text.String() + ` GROUP BY grp, scraper, state`, where.args
}

// CountPast is rowstore.Archive.
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
