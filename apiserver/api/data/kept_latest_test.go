package data_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// The latest runs are those at the time of the call, whatever happens to them until the file is
// written. Only removed rows make it fail.
func TestKeptExportsOfLatestRuns(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(t *testing.T, k *keeper) ids.ID // makes a run before the call
		between func(t *testing.T, k *keeper, run ids.ID)
		want    string // the rows; "": they are gone
	}{
		"a run with rows before it is deleted": {
			between: func(t *testing.T, k *keeper, _ ids.ID) { k.deleteRun(t, k.jobs[2]) }},
		"a run is deleted and another has more rows": {
			before: func(t *testing.T, k *keeper) ids.ID { return k.held(t, k.other) },
			between: func(t *testing.T, k *keeper, held ids.ID) {
				k.Client.Must(t, client.ReleaseRun{Customer: "alice", Job: held})
				k.deleteRun(t, k.jobs[2])
			}},
		"a run that waited begins": {
			before: func(t *testing.T, k *keeper) ids.ID {
				run := k.pending(t, k.other)
				k.run(t, k.shop, `{"n":9}`)
				return run
			},
			between: func(t *testing.T, k *keeper, run ids.ID) {
				k.Client.Dispatch(t, run, 0)
			}, want: "459"},
		"a run that was held back is released": {
			before: func(t *testing.T, k *keeper) ids.ID { return k.held(t, k.shop) },
			between: func(t *testing.T, k *keeper, held ids.ID) {
				k.Client.Must(t, client.ReleaseRun{Customer: "alice", Job: held})
			}, want: "45678"},
		"a run without rows fails": {
			before: func(t *testing.T, k *keeper) ids.ID {
				run := k.pending(t, k.shop)
				k.Client.Dispatch(t, run, 0)
				return run
			},
			between: func(t *testing.T, k *keeper, run ids.ID) { k.fail(t, run) }, want: "45"},
		"a scraper is deleted, and its rows stay": {
			between: func(t *testing.T, k *keeper, _ ids.ID) {
				path := "/api/scraper/" + k.other.String()
				k.remove(t, path+"/preview-delete", path, "")
			}, want: "45678"},
		"a run comes": {
			between: func(t *testing.T, k *keeper, _ ids.ID) { k.run(t, k.shop, `{"n":9}`) },
			want:    "45678"},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store rowstore.Store) {
				k := startKeeperOn(t, store)
				var run ids.ID
				if c.before != nil {
					run = c.before(t, k)
				}
				id := k.ask(t, apitest.User, "format=csv&fields=n&isLastRun=true&groupId="+
					k.group.String())
				c.between(t, k, run)
				k.step(t, id, 0)
				if c.want == "" {
					k.Run(t, k.state(id, map[string]any{"state": "FAILED",
						"errorCode": "rows_gone"}))
					return
				}
				got := column(t, "csv", k.Call(t, file(apitest.User, id, 200, nil)).Body)
				if got != "n: "+c.want {
					t.Errorf("rows %s, want %s", got, c.want)
				}
			})
		})
	}
}

// held makes a run with four rows that is held back, in a group with quarantine.
func (k *keeper) held(t *testing.T, scraper ids.ID) ids.ID {
	t.Helper()
	k.quarantine(t)
	k.odd = "odd"
	k.rig.run(t, scraper, `{"n":0}`, `{"n":0}`, `{"n":0}`, `{"n":0}`)
	k.odd = ""
	return k.jobs[len(k.jobs)-1]
}

// For many latest runs only a hash is kept. If they change, the export fails instead of continuing.
func TestKeptExportsOfManyLatestRuns(t *testing.T) {
	k := startKeeper(t)
	k.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: k.IDs.New(),
		Amount: 1_000_000_000})
	waits := k.pending(t, k.shop)
	for n := range 500 {
		k.Client.Dispatch(t, k.pending(t, k.scraper(t, fmt.Sprint(n))), 0)
	}
	running := 0
	for _, job := range k.Client.View().OpenJobsOfCustomer("alice") {
		if job.State == model.Running {
			running++
		}
	}
	if running != 500 {
		t.Fatalf("%d runs are running", running)
	}
	query := "isLastRun=true&groupId=" + k.group.String()
	ready, fails := k.ask(t, apitest.User, query), k.ask(t, apitest.User, query)
	k.step(t, ready, 0)
	k.Run(t, k.state(ready, map[string]any{"state": "READY", "rows": 5}))
	k.Client.Dispatch(t, waits, 0)
	k.step(t, fails, 0)
	k.Run(t, k.state(fails, map[string]any{"state": "FAILED", "errorCode": "rows_gone"}))
	if state := k.Client.View().Job(waits).State; state != model.Running {
		t.Errorf("the run is %s", state)
	}
}
