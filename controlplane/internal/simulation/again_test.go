package simulation

import (
	"context"
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
)

// TestWindowIsExtendedAgain proposes each extension twice, as a leader does that missed the
// outcome. Money has come meanwhile, so refused links are granted and sent.
func TestWindowIsExtendedAgain(t *testing.T) {
	granted := 0
	for seed := range uint64(500) {
		n, err := extendAgain(seed)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		granted += n
	}
	if granted < 100 {
		t.Errorf("%d seqs were granted that had been refused: too few to tell", granted)
	}
}

// extendAgain runs one seed, and counts what only the second proposal granted.
func extendAgain(seed uint64) (granted int, err error) {
	ctx := context.Background()
	w, err := newWorld(seed)
	if err != nil {
		return 0, err
	}
	for _, truth := range slices.Clone(w.runs) {
		if err := w.launch(truth); err != nil {
			return 0, err
		}
	}
	for range 5 {
		if _, err := w.leader.Read(ctx); err != nil {
			return 0, err
		}
		again := command.ExtendWindowPayload{Runs: w.leader.Dispatcher.Plan(16)}
		first, err := w.extend(again)
		if err != nil {
			return 0, err
		}
		for _, truth := range w.runs {
			if err := w.topUp(truth.customer, 20*pagePrice); err != nil {
				return 0, err
			}
		}
		second, err := w.extend(again)
		if err != nil {
			return 0, err
		}
		for _, grant := range second.Grants {
			if slices.Contains(first.Refused, command.SeqRef{Job: grant.Job, Seq: grant.Seq}) {
				granted++
			}
		}
	}
	if err := w.finish(); err != nil {
		return 0, err
	}
	_, err = w.verify("")
	return granted, err
}

func (w *world) extend(payload command.ExtendWindowPayload) (command.Window, error) {
	result, err := w.propose(context.Background(), payload)
	if err != nil {
		return command.Window{}, err
	}
	return command.ResultOf[command.ExtendWindowPayload](result)
}

// pickInWorld returns a world whose runs are launched, with picks that are not proposed.
func pickInWorld(t *testing.T, seed uint64) (*world, []command.WindowRun) {
	t.Helper()
	w, err := newWorld(seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, truth := range slices.Clone(w.runs) {
		if err := w.launch(truth); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.leader.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, w.leader.Dispatcher.Plan(16)
}

// TestStoppedWhileItIsPicked closes a run whose seqs were picked and not proposed. Its host still
// has room for other runs.
func TestStoppedWhileItIsPicked(t *testing.T) {
	ctx := context.Background()
	picked := 0
	for seed := range uint64(100) {
		w, plan := pickInWorld(t, seed)
		for _, truth := range w.runs {
			if _, err := w.propose(ctx, command.StopRunPayload{Customer: truth.customer,
				Scraper: truth.scraper}); err != nil {
				t.Fatal(err)
			}
		}
		for more := true; more; {
			var err error
			if more, err = w.closeNext(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.extend(command.ExtendWindowPayload{Runs: plan}); err != nil {
			t.Fatal(err)
		}
		if err := w.finish(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		picked += len(plan)
	}
	if picked < 50 {
		t.Errorf("%d runs were picked of: too few to tell", picked)
	}
}

// TestExtensionComesLate applies an extension under the next leadership, which did not ask for it.
func TestExtensionComesLate(t *testing.T) {
	ctx := context.Background()
	granted := 0
	for seed := range uint64(100) {
		w, plan := pickInWorld(t, seed)
		if err := w.lead(); err != nil {
			t.Fatal(err)
		}
		for range seed % 4 { // the next leader has read none or some of the lists
			if _, err := w.leader.Read(ctx); err != nil {
				t.Fatal(err)
			}
		}
		window, err := w.extend(command.ExtendWindowPayload{Runs: plan})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.finish(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		} else if _, err := w.verify(""); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		granted += len(window.Grants)
	}
	if granted < 100 {
		t.Errorf("%d seqs were granted: too few to tell", granted)
	}
}
