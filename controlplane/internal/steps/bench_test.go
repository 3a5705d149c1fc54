package steps_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

// webList is a link list over a thousand hosts, generated as it is read.
type webList struct {
	steps.Store
	links uint32
}

func (w webList) Links(_ context.Context, _ ids.ID, from uint32, most int) ([]rowstore.Link,
	error) {
	var links []rowstore.Link
	for seq := from; seq < w.links && len(links) < most; seq++ {
		links = append(links, rowstore.Link{Seq: seq,
			URL: fmt.Sprintf("http://host-%03d.example/page/%d", seq%1000, seq)})
	}
	return links, nil
}

func (w webList) LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error) {
	var links []rowstore.Link
	for _, seq := range seqs {
		one, _ := w.Links(ctx, list, seq, 1)
		links = append(links, one...)
	}
	return links, nil
}

func (webList) Seal(context.Context, ids.ID, func(model.Unit, bool) bool) error { return nil }

// sink takes tasks and returns them as receipts.
type sink struct {
	stream.Log
	receipts []model.Receipt
}

func (s *sink) TryPublish(_ stream.Topic, _ int, records ...[]byte) error {
	for _, record := range records {
		task, _, err := stream.DecodeTasks(record)
		if err != nil {
			return err
		}
		s.receipts = append(s.receipts,
			model.Receipt{Job: task.Job, Unit: model.Unit{Seq: task.Seq}, Outcome: model.Delivered,
				PriceRow: "tier:plain", Quantity: 1, Items: 1, Last: true})
	}
	return nil
}

// loop is the control plane without Raft and other roles: tasks come back as receipts at once.
type loop struct {
	*steps.Steps
	propose func(context.Context, command.Payload) (any, error)
	machine *fsm.FSM
	log     *sink
	job     ids.ID
	index   uint64 // commands applied
	millis  int64  // current time, Unix
}

const loopShards = 64

// newLoop launches a run over this many links.
func newLoop(t testing.TB, links uint32) *loop {
	t.Helper()
	l := &loop{machine: fsm.New(), log: &sink{}, millis: 1}
	var source ids.Sequence
	l.propose = func(_ context.Context, payload command.Payload) (any, error) {
		l.millis, l.index = l.millis+20, l.index+1
		data, err := l.machine.Encode(source.New(), l.millis, payload, nil)
		if err != nil {
			return nil, err
		}
		result := l.machine.Apply(l.index, data)
		return result.Value, result.Err
	}
	d := dispatch.New(dispatch.Config{Leader: 1, Shards: loopShards, Window: 65_536,
		HostOf:  func(url string) string { return strings.SplitN(url, "/", 4)[2] },
		ShardOf: func(host string) int { return int(host[7]) % loopShards },
		Pace:    func(*state.View, *state.Job) float64 { return 0 },
		Now:     func() time.Time { return time.UnixMilli(l.millis) }, View: l.view})
	l.machine.Observe(d.Applied)
	l.Steps = &steps.Steps{Counts: &steps.Counts{}, Dispatcher: d, State: l.machine.Store,
		Propose: l.propose,
		Store:   webList{links: links}, Log: l.log, IDs: &source,
		NowMicros: func() int64 { return l.millis * 1000 },
		Unread:    func(error) {},
		Point:     func(string) {}}
	group, scraper := source.New(), source.New()
	l.job = source.New()
	for _, payload := range []command.Payload{
		command.CreateClusterPayload{Version: command.Newest, ID: source.New(), Shards: loopShards,
			Prices: price.List{{RowKey: "tier:plain", Micros: 150}}},
		command.OpenCustomerPayload{Customer: "c", Entry: source.New()},
		command.AdjustWalletPayload{Customer: "c", Entry: source.New(), Amount: 1 << 50},
		command.PutGroupPayload{Create: true, ID: group, Customer: "c", Name: "g"},
		command.PutScraperPayload{Create: true, ID: scraper, Customer: "c", Group: group,
			Spec: model.Scraper{Name: "s"}},
		command.LaunchRunPayload{Job: l.job, Entry: source.New(), Customer: "c", Scraper: scraper,
			List:  source.New(),
			Links: links, Tiers: model.TiersOf(model.Plain)},
	} {
		if _, err := l.propose(t.Context(), payload); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *loop) view() *state.View { return l.machine.Store().View() }

// run dispatches and settles the whole run.
func (l *loop) run(t testing.TB) {
	ctx := t.Context()
	for !l.view().Job(l.job).Closed {
		for _, step := range []func(context.Context) (bool, error){l.Read, l.Extend} {
			if _, err := step(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range l.Dispatcher.Closable() {
			if _, err := l.Close(ctx, l.view().Job(id)); err != nil {
				t.Fatal(err)
			}
		}
		for shard := range loopShards {
			if _, err := l.Publish(ctx, shard); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.propose(ctx, command.SettlePayload{Receipts: l.log.receipts}); err != nil {
			t.Fatal(err)
		}
		l.log.receipts = l.log.receipts[:0]
	}
}

// BenchmarkLoop measures the control plane's own work per page: plan, window, publish, settle. It
// has no Raft and no other roles.
func BenchmarkLoop(b *testing.B) {
	l := newLoop(b, uint32(b.N))
	before := l.index
	b.ReportAllocs()
	b.ResetTimer()
	l.run(b)
	b.ReportMetric(float64(b.N)/float64(l.index-before), "pages/command")
}
