package billing

import (
	"errors"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// recounted returns the recounts by run, and the error that ended them.
func (c *checked) recounted() (runs map[ids.ID]Recounted, failed error) {
	runs = map[ids.ID]Recounted{}
	for run, err := range Recount(c.t.Context(), c.control.View(), client.NewHistory(&c.archive),
		c.store) {
		if err != nil {
			return runs, err
		}
		if _, twice := runs[run.Job]; twice {
			c.t.Errorf("run %s is counted twice", run.Job)
		}
		runs[run.Job] = run
	}
	return runs, nil
}

// TestRecountPassesOverWhatCannotBeRead: a recount names an unreadable run, and counts all others.
// An unreachable row store ends it.
func TestRecountPassesOverWhatCannotBeRead(t *testing.T) {
	c := newChecked(t)
	for range recountedAtOnce + 2 {
		c.run(1)
	}
	for _, at := range []int{0, recountedAtOnce - 1, recountedAtOnce + 1} {
		c.store.torn = c.runs[at]
		runs, err := c.recounted()
		if err != nil || len(runs) != len(c.runs) {
			t.Fatalf("run %d cannot be read: %d of %d runs, %v", at, len(runs), len(c.runs), err)
		}
		for n, id := range c.runs {
			run := runs[id]
			if torn := n == at; run.Equal() == torn || (run.Unread != nil) != torn ||
				run.Customer != "alice" || run.Entry.IsZero() || run.LedgerPages != 1 {
				t.Fatalf("run %d cannot be read, and run %d is %+v", at, n, run)
			}
		}
	}
	c.store.of[c.runs[1]] = rowstore.Recount{}
	runs, err := c.recounted()
	if err != nil || runs[c.runs[1]].Equal() || runs[c.runs[1]].Unread != nil {
		t.Errorf("a run that differs: %+v, %v", runs[c.runs[1]], err)
	}
	c.store.fail = errors.New("away")
	if runs, err := c.recounted(); !errors.Is(err, c.store.fail) || len(runs) > 0 {
		t.Errorf("the row store is away: %d runs, %v", len(runs), err)
	}
}
