package controlplane

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

// fetchAll plays the other roles: it holds the shards, answers each task with one delivered page,
// stores it and settles it. It drops the first drop tasks of each shard, as a lost log would.
func fetchAll(t *testing.T, r *running, config Config, drop int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(func() { cancel(); work.Wait() })
	readers := map[uint16]stream.Reader{}
	var holding []client.ShardEpoch
	beat := func() {
		leases, err := r.Heartbeat(ctx,
			client.Heartbeat{Node: config.Node, Boot: config.Boot, Holding: holding})
		if err != nil {
			return
		}
		for _, hold := range leases.Hold {
			if readers[hold.Shard] != nil {
				continue
			}
			reader, err := config.Log.Tail(stream.Tasks, int(hold.Shard))
			if err != nil {
				return
			}
			readers[hold.Shard] = reader
			holding = append(holding, hold)
			work.Go(func() {
				defer func() { _ = reader.Close() }()
				answer(ctx, r, config.Store.(*lists), reader, drop)
			})
		}
	}
	beat()
	beat()
	work.Go(func() {
		for clock.Pause(ctx, r.config.Clock, config.Lease/3) {
			beat()
		}
	})
}

func answer(ctx context.Context, r *running, store *lists, reader stream.Reader, drop int) {
	for {
		messages, err := reader.Fetch(ctx, 100)
		if err != nil {
			return
		}
		var receipts []model.Receipt
		var markers []model.Marker
		for _, message := range messages {
			task, marker, err := stream.DecodeTasks(message.Value)
			switch {
			case err != nil:
				return
			case marker != nil:
				markers = append(markers, *marker)
			case drop > 0:
				drop--
			default:
				page := &model.Page{Job: task.Job, Unit: model.Unit{Seq: task.Seq},
					Outcome:  model.Delivered,
					PriceRow: model.Plain.PriceRow(), Quantity: 1, Last: true,
					Rows: [][]byte{[]byte("{}")}}
				stored, _ := store.PutPages(ctx, []rowstore.PageWrite{{Page: page}})
				receipts = append(receipts, *stored[0])
			}
		}
		if err := r.Settle(ctx, receipts, markers); err != nil {
			return
		}
	}
}

// prepare makes a customer with money, a group and a scraper.
func prepare(t *testing.T, r *running, config Config) (customer string, scraper ids.ID) {
	t.Helper()
	ctx, customer := patient(t), "ann"
	group, scraper := config.IDs.New(), config.IDs.New()
	for _, payload := range []command.Payload{
		client.OpenCustomer{Customer: customer, Entry: config.IDs.New()},
		client.AdjustWallet{Customer: customer, Entry: config.IDs.New(), Amount: 1_000_000_000},
		client.PutGroup{Create: true, ID: group, Customer: customer, Name: "g", DataTable: "g",
			StartType: "MANUAL"},
		client.PutScraper{Create: true, ID: scraper, Customer: customer, Group: group,
			Spec: model.Scraper{Name: "s", Type: model.SingleProduct}},
	} {
		if _, err := r.Propose(ctx, payload, nil); err != nil {
			t.Fatalf("%T: %v", payload, err)
		}
	}
	return customer, scraper
}

func launch(t *testing.T, r *running, config Config, customer string, scraper ids.ID,
	links int) ids.ID {
	t.Helper()
	list := config.IDs.New()
	urls := make([]string, links)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://host%0*d.example/%d", i%7, 0, i)
	}
	config.Store.(*lists).add(list, urls...)
	launched, err := client.Do(patient(t), r,
		client.LaunchRun{Job: config.IDs.New(), Entry: config.IDs.New(),
			Customer: customer, Scraper: scraper, List: list, Links: uint32(links),
			Tiers: model.TiersOf(model.Plain)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return launched.Job
}

// finished waits for the end of a run.
func finished(t *testing.T, r *running, id ids.ID) *client.Job {
	t.Helper()
	ctx := patient(t)
	for {
		job, changed := r.View().WatchJob(id)
		if job != nil && job.Closed {
			return job
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the run does not end: %+v", job)
		}
	}
}

func TestRunIsDispatchedSettledAndClosed(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]int{"nothing lost": 0, "tasks lost": 3} {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t, t.TempDir())
			config.MarkerEvery = 50 * time.Millisecond
			r := serve(t, config)
			customer, scraper := prepare(t, r, config)
			fetchAll(t, r, config, drop)
			const links = 500
			job := finished(t, r, launch(t, r, config, customer, scraper, links))
			if job.State != model.Completed || job.Delivered != links || job.Items != links {
				t.Fatalf("run ended %s with %d pages, %d rows; want %d", job.State, job.Delivered,
					job.Items, links)
			}
			if want := int64(links-5) * 150; job.Charged != want {
				t.Fatalf("charged %d, want %d", job.Charged, want)
			}
			if status, err := r.Status(patient(t)); err != nil || status.Out != 0 ||
				status.Owned != testShards {
				t.Fatalf("status %+v, %v", status, err)
			}
		})
	}
}

// A run whose link list is gone ends, whether or not the leader had read the list, and holds up no
// other run.
func TestRunWithoutAListEnds(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"the same leader": false, "another leader": true} {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t, t.TempDir())
			config.Window, config.MarkerEvery = 8, 50*time.Millisecond
			config.Store.(*lists).atOnce = 64
			r := serve(t, config)
			customer, scraper := prepare(t, r, config)
			lost := launch(t, r, config, customer, scraper, 200) // more than one read returns
			for ctx := patient(t); ; {
				if status, err := r.Status(ctx); err == nil && status.Out == config.Window {
					break
				}
				if !clock.Pause(ctx, r.config.Clock, time.Millisecond) {
					t.Fatal("nothing goes out")
				}
			}
			if restarted {
				r.stop()
			}
			if err := config.Store.DropList(t.Context(), r.View().Job(lost).List); err != nil {
				t.Fatal(err)
			}
			if restarted {
				r = serve(t, config)
			}
			fetchAll(t, r, config, 0)
			if job := finished(t, r, lost); job.State != model.Stopped {
				t.Errorf("it ended %s", job.State)
			}
			if job := finished(t, r,
				launch(t, r, config, customer, scraper, 20)); job.State != model.Completed ||
				job.Delivered != 20 {
				t.Errorf("another run ended %s with %d pages", job.State, job.Delivered)
			}
		})
	}
}
