package leadership

import (
	"errors"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// One place is kept for quick runs, and one for other customers. A run that cannot be closed rests,
// and is not taken twice.
func TestPlacesOfClosing(t *testing.T) {
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, source := clienttest.New(t, now), ids.Random{Now: now.Now}
	var closable []ids.ID
	run := func(customer string, judged bool) ids.ID {
		t.Helper()
		if c.View().Customer(customer) == nil {
			c.Must(t, client.OpenCustomer{Customer: customer, Entry: source.New()})
			c.Must(t, client.AdjustWallet{Customer: customer, Entry: source.New(), Amount: 1_000})
		}
		now.Advance(time.Second)
		group := client.PutGroup{Create: true, ID: source.New(), Customer: customer,
			Name: source.New().String(), StartType: "MANUAL", Quarantine: judged}
		c.Must(t, group)
		scraper := client.PutScraper{Create: true, ID: source.New(), Customer: customer,
			Group: group.ID, Spec: model.Scraper{Name: group.Name, Type: model.SingleProduct}}
		c.Must(t, scraper)
		launch := client.LaunchRun{Job: source.New(), Entry: source.New(), Customer: customer,
			Scraper: scraper.ID, List: source.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
		c.Must(t, launch)
		closable = append(closable, launch.Job)
		return launch.Job
	}
	of := newClosings()
	take := func(want ...ids.ID) {
		t.Helper()
		var got []ids.ID
		for _, run := range of.take(c.View(), closable, now.Now()) {
			got = append(got, run.job.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("taken %v, want %v", got, want)
		}
	}
	end := func(job ids.ID, closed bool, err error) {
		run := of.hands[job]
		run.closed, run.err = closed, err
		of.end(run, now.Now())
		if closed {
			closable = slices.DeleteFunc(closable, func(id ids.ID) bool { return id == job })
		}
	}
	take()
	ann := []ids.ID{run("ann", true), run("ann", true), run("ann", true)}
	take(ann[0], ann[1]) // the most for one customer
	bob := []ids.ID{run("bob", true), run("bob", true)}
	take(bob[0])
	quick := []ids.ID{run("ann", false), run("ann", false), run("cid", false)}
	take(quick[2]) // a customer with none in hand is first
	take()
	end(quick[2], true, nil)
	take(quick[0])
	end(ann[0], true, nil)
	take(bob[1]) // a customer with one goes before a customer with two
	end(quick[0], true, nil)
	take(quick[1])

	// A failed run rests for a second, a spared one for a minute.
	end(quick[1], false, errors.New("away"))
	end(bob[1], false, nil)
	take(ann[2])
	if pause := of.pause(now.Now()); pause != failedPause {
		t.Errorf("a pause of %v", pause)
	}
	now.Advance(failedPause)
	take(quick[1])
	end(quick[1], true, nil)
	end(ann[1], true, nil)
	take()
	if pause := of.pause(now.Now()); pause != sparedPause-failedPause {
		t.Errorf("a pause of %v", pause)
	}
	now.Advance(sparedPause - failedPause)
	take(bob[1])
	if len(of.rests) != 0 {
		t.Errorf("%d rest", len(of.rests))
	}
	// A run that is not judged may take long, too.
	large := run("dan", false)
	c.Spoil(t, func(tx *clienttest.Tx) {
		job := *tx.Job(large)
		job.Pages = quickPages + 1
		tx.PutJob(&job)
	})
	take()
	end(ann[2], true, nil)
	take(large)
}
