package fsm

import (
	"flag"
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of what the notice of an ended run takes, in bytes.
const (
	mostHeapOfANotice     = 140
	mostSnapshotOfANotice = 120
)

var noticed = flag.Int("noticed", 100, "customers whose notices are measured")

// TestNoticesAreSmall: the notices of 90 days of runs take little of a snapshot, and little memory.
// That holds in the process that made them, and after its restart.
func TestNoticesAreSmall(t *testing.T) {
	const each = 230
	customers := *noticed
	d := newDefiner(t, command.Newest)
	var scrapers []*state.Scraper
	for n := range customers {
		customer, group := d.owner(n)
		put := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer,
			Group: group, Spec: recipe(0)}
		put.Spec.Name = fmt.Sprintf("Shop number %d", n)
		d.must(put)
		scrapers = append(scrapers, d.m.Store().View().Scraper(put.ID))
		d.tell(scrapers[n]) // so that there is an inbox
	}
	d.forget()
	empty := d.snapshot()
	restored, live := -d.heap(empty), -liveHeap()
	for range each {
		for _, scraper := range scrapers {
			d.tell(scraper)
		}
	}
	live += liveHeap()
	full := d.snapshot()
	restored += d.heap(full)
	notices := customers * each
	stored := len(full) - len(empty)
	t.Logf("a notice takes %d bytes of memory, %d after a restart, and %d of a snapshot",
		live/notices, restored/notices, stored/notices)
	if max(live, restored)/notices > mostHeapOfANotice ||
		stored/notices > mostSnapshotOfANotice {
		t.Errorf("at most %d and %d are allowed", mostHeapOfANotice, mostSnapshotOfANotice)
	}
	for _, scraper := range scrapers {
		if inbox := d.m.Store().View().Inbox(scraper.Customer); inbox.Unread != each+1 {
			t.Fatalf("%+v", inbox)
		}
	}
}

// tell tells of a run of a scraper that has ended.
func (d *definer) tell(scraper *state.Scraper) {
	d.Helper()
	d.index++
	if err := d.m.Store().Update(d.index, int64(d.index)*1_000, func(tx *state.Tx) error {
		NotifyRun(tx, &state.Job{ID: d.id(), Customer: scraper.Customer, Group: scraper.Group,
			Scraper: scraper.ID, State: model.Completed, Pages: 12, Items: 240, Charged: 1_800})
		return nil
	}); err != nil {
		d.Fatal(err)
	}
}
