package fsm

import (
	"bytes"
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// TestRestoredReplicasStayEqual: one replica applies every command. Others start from its snapshot,
// before and after the version became active. In the end all write equal snapshots.
func TestRestoredReplicasStayEqual(t *testing.T) {
	d := newDefiner(t, 1)
	replicas := []*FSM{d.m}
	apply := func(payload command.Payload, call *command.Call) {
		t.Helper()
		data, err := d.m.Encode(d.id(), int64(d.index), payload, call)
		if err != nil {
			t.Fatal(err)
		}
		d.index++
		for _, m := range replicas {
			if result := m.Apply(d.index, data); result.Err != nil {
				t.Fatalf("%T: %v", payload, result.Err)
			}
		}
	}
	join := func() {
		var written bytes.Buffer
		if err := d.m.Store().Snapshot().Write(&written); err != nil {
			t.Fatal(err)
		}
		m := New()
		store, err := state.Restore(&written)
		if err != nil {
			t.Fatal(err)
		}
		m.store.Store(store)
		replicas = append(replicas, m)
	}
	customer, group := "c1", d.id()
	apply(command.OpenCustomerPayload{Customer: customer, Entry: d.id()}, nil)
	apply(command.PutGroupPayload{Create: true, ID: group, Customer: customer, Name: "g"}, nil)
	namesake := command.PutGroupPayload{Create: true, ID: d.id(), Customer: customer, Name: "g"}
	apply(command.AdjustWalletPayload{Customer: customer, Entry: d.id(), Amount: 1 << 40}, nil)
	apply(command.PutPricesPayload{Rows: testPrices}, nil)
	var scrapers []ids.ID
	runs := 0
	work := func() {
		put := command.PutScraperPayload{Create: true, ID: d.id(), Customer: customer,
			Group: group, Spec: recipe(len(scrapers) % 2)}
		put.Spec.Name = fmt.Sprint("s", len(scrapers))
		apply(put, &command.Call{Customer: customer, Operation: "put",
			Key: put.Spec.Name, Request: 7})
		scrapers = append(scrapers, put.ID)
		for _, scraper := range scrapers {
			launch := command.LaunchRunPayload{Job: d.id(), Entry: d.id(), Customer: customer,
				Scraper: scraper, List: d.id(), Links: 1, Tiers: model.TiersOf(model.Plain)}
			runs++
			apply(launch, &command.Call{Customer: customer, Operation: "run",
				Key: fmt.Sprint(runs), Request: 9})
			apply(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: launch.Job,
				Seqs: []uint32{0}}}}, nil)
			apply(command.SettlePayload{Receipts: []model.Receipt{{Job: launch.Job,
				Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1, Items: 12,
				Last: true}}}, nil)
			apply(command.CloseRunPayload{Job: launch.Job}, nil)
		}
	}
	check := func(when string) {
		t.Helper()
		var want bytes.Buffer
		if err := replicas[0].Store().Snapshot().Write(&want); err != nil {
			t.Fatal(err)
		}
		for i, m := range replicas[1:] {
			var got bytes.Buffer
			if err := m.Store().Snapshot().Write(&got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%s: replica %d differs (%d and %d bytes)", when, i+1, got.Len(),
					want.Len())
			}
		}
	}
	work()
	join()
	work()
	check("at version 1")
	apply(command.ActivateVersionPayload{Version: 2}, nil)
	join()
	check("when the version became active")
	apply(namesake, nil)
	work()
	join()
	work()
	check("at version 2")
	for range 3 {
		batch, err := archive.Next(d.m.Store().View(), 5)
		if err != nil {
			t.Fatal(err)
		}
		apply(command.DropArchivedPayload{Generation: batch.Generation, From: batch.From,
			Upto: batch.Upto, Keep: 2}, nil)
		join()
		check("as history leaves")
		work()
		check("after more work")
	}
}
