// Package storetest opens row stores for tests: the embedded one, and a server where there is one.
package storetest

import (
	"os"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// NewEmbedded opens an empty SQLite that lives as long as the test.
func NewEmbedded(t testing.TB) rowstore.Store {
	t.Helper()
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return store
}

// RunOnEach runs a test on SQLite, and on ClickHouse if CLICKHOUSE_URL is set.
func RunOnEach(t *testing.T, test func(*testing.T, rowstore.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, NewEmbedded(t)) })
	url := os.Getenv("CLICKHOUSE_URL")
	if url == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("CLICKHOUSE_URL is not set")
		}
		return
	}
	server, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url, Node: "test",
		Database: "test_" + ids.Random{Now: time.Now}.New().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	t.Run("clickhouse", func(t *testing.T) { test(t, server) })
}
