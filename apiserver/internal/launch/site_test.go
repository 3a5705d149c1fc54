package launch

import (
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// A run of a site after another run begins with the links that the other left. It waits for the
// link states, but not for ever. That run may have left the state.
func TestNextRunOfASiteKnowsWhatTheOneBeforeHasRead(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration // until the states are written
		first string        // link of the second run
		takes time.Duration
		keep  int // runs in the state
	}{
		"written in time": {3 * time.Second, "https://shop.test/1", 3 * time.Second, 1},
		"never written":   {time.Hour, "https://shop.test/0", statesTime, 1},
		"left the state":  {3 * time.Second, "https://shop.test/1", 3 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.Clock = clock.System{}
				site := client.PutSite{ID: r.IDs.New(), Customer: "alice", Scraper: r.scraper,
					Version: r.IDs.New(), Links: 2}
				links := []rowstore.SiteLink{{Seq: 0, URL: "https://shop.test/0",
					Hash: rowstore.LinkHash("https://shop.test/0")}, {Seq: 1,
					URL: "https://shop.test/1", Hash: rowstore.LinkHash("https://shop.test/1")}}
				ctx := t.Context()
				if err := r.Store.PutSiteLinks(ctx, site.Version, links); err != nil {
					t.Fatal(err)
				}
				if err := r.Store.FinishSite(ctx, site.Version, 2); err != nil {
					t.Fatal(err)
				}
				r.state.Must(t, site)
				tell := func(upto string) {
					r.state.Spoil(t, func(tx *clienttest.Tx) {
						tx.PutWork(&client.WorkItem{ID: ids.ID{7}, Kind: work.LinkStates,
							State: client.WorkWaiting, Progress: []byte(`{"Upto":` + upto + `}`)})
					})
				}
				tell("0")
				first, err := r.Start(ctx, r.caller(""), r.scraper, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.state.Must(t, client.StopRun{Customer: "alice", Job: first.Job})
				r.state.CloseRun(t, first.Job)
				r.state.Archive(t, r.Store.(rowstore.Archive), c.keep)
				told := time.AfterFunc(c.after, func() {
					err := r.Store.PutLinkStates(ctx, site.ID, 1, []rowstore.LinkOutcome{
						{Hash: links[0].Hash, State: rowstore.LinkVisited}})
					if err != nil {
						t.Error(err)
					}
					tell("1000000")
				})
				defer told.Stop()
				began := time.Now()
				second, err := r.Start(ctx, r.caller(""), r.scraper, nil)
				if err != nil {
					t.Fatal(err)
				}
				read, err := r.Store.Links(ctx, r.state.View().Job(second.Job).List, 0, 1)
				if err != nil || len(read) != 1 || read[0].URL != c.first {
					t.Errorf("it begins with %+v, %v", read, err)
				}
				if took := time.Since(began); took < c.takes || took > c.takes+statesLook {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
