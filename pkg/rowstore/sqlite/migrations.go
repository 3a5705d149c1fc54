package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"shoal.dev/shoal/pkg/rowstore"
)

// migrations bring the schema from each version to the next: version n has had the first n.
// Released ones never change, and new ones only expand (see package rowstore).
var migrations = []string{`
-- Jobs under a small number, which stands for them in every other table. A sealed job takes no more pages.
CREATE TABLE jobs (
	id       INTEGER PRIMARY KEY,
	job      BLOB NOT NULL UNIQUE,
	customer TEXT NOT NULL,
	grp      BLOB NOT NULL,
	scraper  BLOB NOT NULL,
	started  INTEGER NOT NULL,          -- Unix microseconds
	sealed   INTEGER NOT NULL DEFAULT 0,
	rows     INTEGER NOT NULL DEFAULT 0 -- how many rows it has
);
CREATE INDEX jobs_group ON jobs (grp, scraper);

-- Page records. unit is seq << 32 | page.
CREATE TABLE pages (
	job      INTEGER NOT NULL,
	unit     INTEGER NOT NULL,
	outcome  INTEGER NOT NULL,
	items    INTEGER NOT NULL,
	place    INTEGER NOT NULL, -- of the first row; the others follow it without a gap
	quantity INTEGER NOT NULL,
	price    TEXT NOT NULL,
	hash     INTEGER NOT NULL, -- of the canonical address, 0 for none
	last     INTEGER NOT NULL, -- whether its chain ends here
	content  BLOB NOT NULL,
	PRIMARY KEY (job, unit)
) WITHOUT ROWID;
CREATE INDEX pages_delivered ON pages (job, hash) WHERE outcome = 1 AND hash <> 0;
CREATE INDEX pages_errored ON pages (job, unit) WHERE outcome = 2;

-- Rows in the order in which they were stored. Whose they are, the spans say.
CREATE TABLE rows (
	place INTEGER PRIMARY KEY,
	at    INTEGER NOT NULL, -- Unix microseconds when the page was read
	doc   TEXT NOT NULL
);

-- The rows from first to last, where they are still there, belong to job.
CREATE TABLE spans (
	job   INTEGER NOT NULL,
	first INTEGER NOT NULL,
	last  INTEGER NOT NULL,
	at    INTEGER NOT NULL, -- greatest of the rows
	PRIMARY KEY (job, first)
) WITHOUT ROWID;

-- The newest place ever given to a row.
CREATE TABLE horizon (place INTEGER NOT NULL);
INSERT INTO horizon VALUES (0);

CREATE TABLE lists (
	id       INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: decoded chunks are cached under it
	list     BLOB NOT NULL UNIQUE,
	count    INTEGER NOT NULL DEFAULT 0,
	finished INTEGER NOT NULL DEFAULT 0
);

-- Packed links. id is lists.id << 16 | number of the chunk.
CREATE TABLE chunks (
	id   INTEGER PRIMARY KEY,
	data BLOB NOT NULL
);
`, `
-- The ends of chains of more than a page: who looks for one does not go through all of its pages.
CREATE INDEX pages_ended ON pages (job, unit) WHERE last <> 0 AND unit & 0xffffffff <> 0;
`}

// migrate brings the schema up to date, each step in its own transaction.
func migrate(ctx context.Context, conn *sql.Conn) error {
	if err := beShrinkable(ctx, conn); err != nil {
		return fmt.Errorf("have the file shrink: %w", err)
	}
	const table = `CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY)`
	if _, err := conn.ExecContext(ctx, table); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	var version int
	err := conn.QueryRowContext(ctx,
		`SELECT coalesce(max(version), 0) FROM migrations`).Scan(&version)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if version > len(migrations)+rowstore.SchemasAhead {
		return fmt.Errorf("the database has schema version %d, this program knows %d and works "+
			"with one more: "+
			"start a newer release", version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		if err := step(ctx, conn, version+1); err != nil {
			return fmt.Errorf("migration %d: %w", version+1, err)
		}
	}
	if err := makeArchive(ctx, conn); err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	if _, err := conn.ExecContext(ctx, retentionSchema); err != nil {
		return fmt.Errorf("make what goes with rows: %w", err)
	}
	if _, err := conn.ExecContext(ctx, sitemapsSchema); err != nil {
		return fmt.Errorf("make room for what harvests know: %w", err)
	}
	if _, err := conn.ExecContext(ctx, sitesSchema); err != nil {
		return fmt.Errorf("make the tables of sites: %w", err)
	}
	return nil
}

func step(ctx context.Context, conn *sql.Conn, version int) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a no-op after Commit
	if _, err := tx.ExecContext(ctx, migrations[version-1]); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO migrations (version) VALUES (?)`,
		version); err != nil {
		return err
	}
	return tx.Commit()
}
