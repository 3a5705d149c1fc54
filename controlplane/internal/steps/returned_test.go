package steps_test

import (
	"context"
	"errors"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// emptyStore has no pages, and counts the reads of records.
type emptyStore struct {
	webList
	reads *int
}

func (s emptyStore) Records(context.Context, ids.ID, []model.Unit) ([]model.Receipt, error) {
	*s.reads++
	return nil, nil
}

func (s emptyStore) Sealed(context.Context, ids.ID) (bool, error) {
	*s.reads++
	return false, nil
}

// sendAll publishes all unsent tasks, and makes a marker behind them in each shard.
func (l *loop) sendAll(t *testing.T) (markers []model.Marker) {
	t.Helper()
	for shard := range loopShards {
		if _, err := l.Publish(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
		if m, ok := l.Dispatcher.Mark(shard); ok {
			markers = append(markers, m)
		}
	}
	return markers
}

// Dispatches lost in all shards at once, as with a fetcher, are sent again with as few reads and
// commands as in one shard.
func TestShardsThatAreLostTogetherComeBackTogether(t *testing.T) {
	const links = 1000
	l := newLoop(t, links)
	reads, commands, moved := 0, 0, 0
	l.Store = emptyStore{webList{links: links}, &reads}
	ctx := t.Context()
	for range 100 {
		if _, err := l.Read(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Extend(ctx); err != nil {
			t.Fatal(err)
		}
	}
	markers := l.sendAll(t)
	out := len(l.log.receipts)
	if out < 100 || len(markers) < 10 {
		t.Fatalf("%d tasks are out, with %d markers", out, len(markers))
	}
	l.Propose = func(ctx context.Context, payload command.Payload) (any, error) {
		commands++
		if p, ok := payload.(command.RedispatchPayload); ok {
			moved += len(p.Lost)
		}
		return l.propose(ctx, payload)
	}
	if err := l.Returned(ctx, append(markers, markers[0])...); err != nil {
		t.Fatal(err)
	}
	if moved != out || l.Counts.Redispatched.Load() != uint64(out) {
		t.Errorf("%d dispatches were named and %d went out again, of %d", moved,
			l.Counts.Redispatched.Load(), out)
	}
	if reads != 2 || commands != 1 {
		t.Errorf("%d reads and %d commands for %d markers", reads, commands, len(markers))
	}
}

// launchSecond launches a second run.
func (l *loop) launchSecond(t *testing.T, links uint32) ids.ID {
	t.Helper()
	second := command.LaunchRunPayload{Job: ids.ID{9, 1}, Entry: ids.ID{9, 2}, Customer: "c",
		Scraper: ids.ID{9, 3}, List: ids.ID{9, 4}, Links: links, Tiers: model.TiersOf(model.Plain)}
	for _, payload := range []command.Payload{command.PutScraperPayload{Create: true,
		ID: second.Scraper, Customer: "c", Group: l.view().Job(l.job).Group,
		Spec: model.Scraper{Name: "t"}}, second} {
		if _, err := l.propose(t.Context(), payload); err != nil {
			t.Fatal(err)
		}
	}
	return second.Job
}

// unreadStore has no pages, and cannot be read for one run.
type unreadStore struct {
	emptyStore
	job ids.ID
}

var errUnread = errors.New("a record cannot be read")

func (s unreadStore) Records(ctx context.Context, job ids.ID, units []model.Unit) (
	[]model.Receipt, error) {
	if job == s.job {
		return nil, errUnread
	}
	return s.emptyStore.Records(ctx, job, units)
}

// A run whose pages cannot be looked up waits, with an error. Another run's losses are sent again.
func TestRunThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	const links = 20
	l, ctx := newLoop(t, links), t.Context()
	second := l.launchSecond(t, links)
	reads := 0
	l.Store = unreadStore{emptyStore{webList{links: links}, &reads}, l.job}
	for range 100 {
		if _, err := l.Extend(ctx); err != nil {
			t.Fatal(err)
		}
	}
	markers := l.sendAll(t)
	again := map[ids.ID]int{}
	l.Propose = func(ctx context.Context, payload command.Payload) (any, error) {
		if p, ok := payload.(command.RedispatchPayload); ok {
			for _, ref := range p.Lost {
				again[ref.Job]++
			}
		}
		return l.propose(ctx, payload)
	}
	if err := l.Returned(ctx, markers...); !errors.Is(err, errUnread) {
		t.Errorf("nobody hears of it: %v", err)
	}
	if again[second] != links || again[l.job] != 0 {
		t.Errorf("%v went out again", again)
	}
}
