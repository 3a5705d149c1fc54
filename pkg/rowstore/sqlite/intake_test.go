package sqlite

import (
	"errors"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

func openStore(t *testing.T) *Store {
	t.Helper()
	store, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func createList(t *testing.T, store *Store, id ids.ID) *listWriter {
	t.Helper()
	w, err := store.CreateList(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*listWriter)
}

// TestDropUnderIntake: a list that is dropped during its intake does not come back.
func TestDropUnderIntake(t *testing.T) {
	store := openStore(t)
	w := createList(t, store, ids.ID{1})
	if err := store.DropList(t.Context(), ids.ID{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(t.Context(), "x", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(t.Context()); !errors.Is(err, rowstore.ErrListUnknown) {
		t.Fatalf("finished a dropped list: %v", err)
	}
	if err := w.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
}
