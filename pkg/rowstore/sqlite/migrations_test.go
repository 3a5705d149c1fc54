package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// expand is a migration that a next release may have.
const expand = `
ALTER TABLE jobs ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
ALTER TABLE pages ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
ALTER TABLE rows ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
ALTER TABLE spans ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
ALTER TABLE horizon ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
ALTER TABLE lists ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
ALTER TABLE chunks ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
ALTER TABLE migrations ADD COLUMN later INTEGER NOT NULL DEFAULT 7;
CREATE TABLE later (id INTEGER PRIMARY KEY);
CREATE INDEX rows_later ON rows (later);
`

// migrateAhead adds versions of a later release to a store's database.
func migrateAhead(t *testing.T, dir string, versions int) {
	t.Helper()
	store, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", writeDSN(filepath.Join(dir, "rows.db")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(context.Background(), expand); err != nil {
		t.Fatal(err)
	}
	for i := range versions {
		if _, err := db.ExecContext(context.Background(),
			`INSERT INTO migrations (version) VALUES (?)`, len(migrations)+i+1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSchemaOfTheNextRelease runs the suite on a schema that the next release has migrated, as
// after a rollback.
func TestSchemaOfTheNextRelease(t *testing.T) {
	rowstoretest.RunCore(t, func(t *testing.T) rowstore.Store {
		dir := t.TempDir()
		migrateAhead(t, dir, rowstore.SchemasAhead)
		store, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}

// TestSchemaTooNew: a schema two releases ahead is refused, and the error names both versions.
func TestSchemaTooNew(t *testing.T) {
	dir := t.TempDir()
	migrateAhead(t, dir, rowstore.SchemasAhead+1)
	_, err := Open(Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "schema version 4, this program knows 2") {
		t.Errorf("%v", err)
	}
}
