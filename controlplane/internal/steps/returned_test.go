package steps_test

import (
	"context"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// emptyStore has no pages, and counts who asks for them.
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

// What is lost in all shards at once, as with a fetcher, goes out again by as few reads and
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
	var markers []model.Marker
	for shard := range loopShards {
		if _, err := l.Publish(ctx, shard); err != nil {
			t.Fatal(err)
		}
		if m, ok := l.Dispatcher.Mark(shard); ok {
			markers = append(markers, m)
		}
	}
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
