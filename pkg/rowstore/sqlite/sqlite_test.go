package sqlite_test

import (
	"testing"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

func open(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestConformance(t *testing.T) {
	rowstoretest.Run(t, func(t *testing.T) rowstore.Store { return open(t, t.TempDir()) })
}
