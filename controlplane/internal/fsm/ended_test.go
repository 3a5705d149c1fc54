package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// TestLeaderHearsOfEndedRuns: whatever ends a run, the same command tells the observer, once. The
// leader then gives back the run's dispatches that wait to be sent.
func TestLeaderHearsOfEndedRuns(t *testing.T) {
	run := func(b *bench) (group, scraper, job ids.ID) {
		group, members := b.members("g", 1)
		launched, err := b.launch(members[0])
		if err != nil {
			b.t.Fatal(err)
		}
		return group, members[0], launched.Job
	}
	agreed := func(b *bench, d command.Deletion, commit command.Payload) {
		b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
		b.must(commit)
	}
	for name, end := range map[string]func(b *bench, group, scraper, job ids.ID){
		"stopped": func(b *bench, _, scraper, _ ids.ID) {
			b.must(command.StopRunPayload{Customer: "a", Scraper: scraper})
			b.must(command.StopRunPayload{Customer: "a", Scraper: scraper}) // tells nothing more
		},
		"stopped with its group": func(b *bench, group, _, _ ids.ID) {
			b.must(command.StopGroupPayload{Customer: "a", Group: group})
		},
		"its scraper is deleted": func(b *bench, _, scraper, _ ids.ID) {
			d := command.Deletion{Customer: "a", Operation: command.OpDeleteScraper,
				Target: scraper}
			agreed(b, d, command.DeleteScraperPayload{Deletion: d, Token: "t"})
		},
		"its group is deleted": func(b *bench, group, _, _ ids.ID) { b.deleteGroup(group, "") },
		"it is deleted": func(b *bench, _, scraper, job ids.ID) {
			d := deletionOf(job, *b.view().Scraper(scraper))
			agreed(b, d, command.DeleteRunPayload{Deletion: d, Token: "t"})
		},
		"its customer is removed": func(b *bench, _, _, _ ids.ID) {
			d := command.Deletion{Customer: "a", Operation: command.OpRemoveCustomer}
			agreed(b, d, command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
		},
		"money does not reach": func(b *bench, _, _, job ids.ID) {
			wallet := b.view().Wallet("a")
			b.index++
			if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
				poor := *wallet
				poor.Available, poor.Free = 0, 0
				tx.PutWallet(&poor)
				return nil
			}); err != nil {
				b.t.Fatal(err)
			}
			b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: job,
				Seqs: []uint32{0}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			group, scraper, job := run(b)
			var told []ids.ID
			b.m.Observe(func(_ command.Payload, _ any, ended []ids.ID) {
				told = append(told, ended...)
			})
			end(b, group, scraper, job)
			if len(told) != 1 || told[0] != job {
				t.Errorf("%v are told of, want run %s", told, job)
			}
		})
	}
}
