package clickhouse_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// migrateAhead makes a database as later releases leave it. Each release adds all that a migration
// may add.
func migrateAhead(t *testing.T, releases int) clickhouse.Config {
	t.Helper()
	c := clickhouse.Config{Database: database(t), Node: "test"}
	if err := open(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	table := func(name string) string { return "`" + c.Database + "`." + name }
	for _, name := range []string{"jobs", "lists", "siteversions"} {
		query(t, `ALTER TABLE `+table(name)+` ADD COLUMN later SimpleAggregateFunction(max, UInt8)`)
	}
	for _, name := range []string{"rows", "weeks", "fences", "intakeweekly", "chunks", "sums",
		"charged", "migrations", "sitelinks", "linkstates"} {
		query(t, `ALTER TABLE `+table(name)+` ADD COLUMN later UInt8 DEFAULT 7`)
	}
	query(t, `CREATE TABLE `+table("later")+` (id UInt8) ENGINE = MergeTree ORDER BY id`)
	query(t, `ALTER TABLE `+table("weeks")+` ADD INDEX later later TYPE minmax GRANULARITY 1`)
	for range releases {
		query(t,
			fmt.Sprintf(`INSERT INTO %s (version, node) SELECT max(version) + 1, 'newer' FROM %[1]s`, table("migrations")))
	}
	return c
}

// TestSchemaOfTheNextRelease runs the suite on a schema that the next release has migrated, as
// after a rollback.
func TestSchemaOfTheNextRelease(t *testing.T) {
	server(t)
	rowstoretest.RunCore(t, func(t *testing.T) rowstore.Store {
		return open(t,
			migrateAhead(t, rowstore.SchemasAhead))
	})
}

// TestSchemaTooNew: a schema two releases ahead is refused, and the error names both versions.
func TestSchemaTooNew(t *testing.T) {
	c := migrateAhead(t, rowstore.SchemasAhead+1)
	c.URL = server(t)
	store, err := clickhouse.Open(context.Background(), c)
	if err == nil {
		_ = store.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "schema version 5, this program knows 3") {
		t.Errorf("%v", err)
	}
}
