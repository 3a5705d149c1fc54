package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// expired notes by what time rows were removed.
type expired struct {
	before time.Time
	times  int
	fail   error
}

func (e *expired) Expire(_ context.Context, before time.Time) error {
	e.before = before
	e.times++
	return e.fail
}

// TestRowsExpireBySafeTime: no node's own clock removes anything.
func TestRowsExpireBySafeTime(t *testing.T) {
	var store expired
	now, unsure := time.Unix(1_700_000_000, 0), errors.New("the clocks differ")
	safe := func(context.Context) (time.Time, error) { return now, unsure }
	kind := Expiry(&store, safe)
	if kind.Name != work.Expire || !kind.Recurring {
		t.Fatalf("%+v", kind)
	}
	if _, err := kind.Step(t.Context(), work.Item{}); !errors.Is(err, unsure) || store.times > 0 {
		t.Errorf("while nobody knows the time: %v, removed %d times", err, store.times)
	}
	unsure = nil
	store.fail = errors.New("down")
	if _, err := kind.Step(t.Context(), work.Item{}); !errors.Is(err, store.fail) {
		t.Errorf("without the row store: %v", err)
	}
	store.fail = nil
	rests, err := kind.Step(t.Context(), work.Item{})
	if err != nil || rests.End != work.Rested || rests.Rest != 24*time.Hour {
		t.Errorf("%+v, %v", rests, err)
	}
	if want := now.Add(-rowstore.Expiry); !store.before.Equal(want) {
		t.Errorf("rows of before %v are removed, want %v", store.before, want)
	}
}
