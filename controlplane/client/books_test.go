package client_test

import (
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// TestWaitingIsBounded: entries made while a run went on, but sealed before it, wait for it.
// Exactly the bound of them may wait.
func TestWaitingIsBounded(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	fake, made := clienttest.New(t, c), ids.Random{Now: c.Now}
	fake.Must(t, client.OpenCustomer{Customer: "ann", Entry: made.New()})
	group, scraper, job := made.New(), made.New(), made.New()
	fake.Must(t, client.PutGroup{Create: true, ID: group, Customer: "ann", Name: "g"})
	fake.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "ann", Group: group,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct}})
	fake.Must(t, client.LaunchRun{Job: job, Entry: made.New(), Customer: "ann", Scraper: scraper,
		List: made.New(), Links: 1, Tiers: model.TiersOf(model.Plain)})
	for range client.EntriesAtOnce + 200 { // entries read together wait together
		fake.Must(t, client.AdjustWallet{Customer: "ann", Entry: made.New(), Amount: 5})
	}
	fake.Must(t, client.StopRun{Customer: "ann", Job: job})
	fake.CloseRun(t, job)
	history := client.NewHistory(&rowstoretest.Archive{})
	for most, refused := range map[int]bool{client.EntriesAtOnce - 1: true,
		client.EntriesAtOnce: false} {
		_, found, err := client.CheckWalletWithin(history, t.Context(), fake.View(),
			fake.View().Wallet("ann"), most)
		if refused != (fault.CodeOf(err) == fault.LimitReached) || len(found) > 0 {
			t.Errorf("at most %d wait: %v, %+v", most, err, found)
		}
	}
}
