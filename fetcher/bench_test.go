package fetcher

import (
	"context"
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// constantWeb is a web that costs nothing.
type constantWeb struct{ response Response }

func (w *constantWeb) Tiers() model.TierSet                                  { return model.TiersOf(model.Plain) }
func (w *constantWeb) RobotsKnown(string) bool                               { return true }
func (w *constantWeb) Robots(context.Context, string) (time.Duration, error) { return 0, nil }
func (w *constantWeb) Fetch(_ context.Context, _ Request) (*Response, error) { return &w.response, nil }

// BenchmarkPage is what a page costs beside its exchange: task to page record, with an extraction of next to nothing.
func BenchmarkPage(b *testing.B) {
	memory, err := stream.NewMemory(stream.Config{Partitions: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer memory.Close()
	web := &constantWeb{Response{Final: "http://h.test/", Status: 200, ContentType: "text/html", Body: []byte("<h1>x</h1>"),
		Release: func() {}}}
	control := newControl(1, title)
	f := New(Config{Node: "n", Log: memory, Control: control, Web: web, IDs: &sequence{}, ShardOf: func(string) int { return 0 }})
	pages, _ := memory.Consume(stream.Pages, "bench")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	for f.Counts().Shards == 0 {
		<-time.After(time.Millisecond)
	}
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for n := range b.N {
			task := model.Task{Job: jobID, Seq: uint32(n), Customer: "c", Scraper: scraperID, Revision: 1, Budget: 1,
				URL: fmt.Sprintf("http://host-%d.test/product/%d", n%1000, n), Tiers: model.TiersOf(model.Plain), Number: uint64(n)}
			_ = memory.Publish(ctx, stream.Tasks, 0, stream.EncodeTask(task))
		}
	}()
	for n := 0; n < b.N; {
		messages, err := pages.Fetch(ctx, 1000)
		if err != nil {
			b.Fatal(err)
		}
		n += len(messages)
		_ = pages.Commit(ctx, messages)
	}
	b.StopTimer()
	cancel()
	<-done
}
