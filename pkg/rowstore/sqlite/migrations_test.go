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

// expand is what a next release's migration may do.
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

// migrateAhead makes a store's database one of programs that know more.
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

// What the next release migrated works as before: a program that goes back to the release before
// finds it so.
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

// A schema of two releases later is refused, by both versions.
func TestSchemaTooNew(t *testing.T) {
	dir := t.TempDir()
	migrateAhead(t, dir, rowstore.SchemasAhead+1)
	_, err := Open(Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "schema version 4, this program knows 2") {
		t.Errorf("%v", err)
	}
}
