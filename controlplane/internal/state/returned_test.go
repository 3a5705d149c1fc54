package state

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Scrapers deleted since the backup are told with what starts them. What an unrelated state lacks
// was not deleted.
func TestWhatComesBackIsTold(t *testing.T) {
	l := &timeline{t: t, now: clusterState(t, 5, 100_000, ids.ID{1}, 4, "n")}
	first := l.save()
	for id := range byte(3) {
		l.do(func(tx *Tx) {
			tx.PutScraper(&Scraper{ID: ids.ID{id}, Customer: "ann", Revision: 1,
				Spec: model.Scraper{Name: string('a' + rune(id))}})
			tx.PutSchedule(&Schedule{Target: ids.ID{id}, Customer: "ann", Cron: "@daily"})
		})
	}
	backup := l.save()
	l.do(func(tx *Tx) {
		tx.RemoveScraper(tx.member(ids.ID{0}), false)
		tx.disarrange(ids.ID{1})
	})
	changes := l.restore(backup, false)
	if changes.ScrapersReturned != 1 || changes.SchedulesReturned != 2 {
		t.Errorf("%+v", changes)
	}
	backup = l.save()
	l.do(func(tx *Tx) {
		for id := range byte(3) {
			tx.disarrange(ids.ID{id})
			tx.RemoveScraper(tx.member(ids.ID{id}), false)
		}
		tx.PutCustomer(&Customer{Ref: "ann", BlockedAt: 1, RemovedAt: 1})
	})
	changes = l.restore(backup, false)
	if changes.ScrapersReturned != 0 || changes.SchedulesReturned != 0 {
		t.Errorf("of a removed customer: %+v", changes)
	}
	l.restore(first, false)
	changes = l.restore(backup, false)
	if changes.ScrapersReturned != 0 || changes.SchedulesReturned != 0 {
		t.Errorf("of no continuation: %+v", changes)
	}
}
