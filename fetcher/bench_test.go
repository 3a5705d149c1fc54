package fetcher

import (
	"context"
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// constantWeb is a web without cost.
type constantWeb struct{ response web.Page }

func (w *constantWeb) Tiers() model.TierSet {
	return model.TiersOf(model.Plain)
}
func (w *constantWeb) KnowsRules(string) bool { return true }
func (w *constantWeb) Leave(string)           {}
func (w *constantWeb) CheckRules(context.Context, string, string) (time.Duration, error) {
	return 0, nil
}
func (w *constantWeb) Fetch(_ context.Context, _ web.Request) (*web.Page, error) {
	return &w.response,
		nil
}

// pageLoop is a fetcher on a web without cost, between the two ends of a log.
type pageLoop struct {
	memory *stream.Memory
	pages  stream.Reader
	next   int // seq
}

func newPageLoop(t testing.TB) *pageLoop {
	t.Helper()
	memory, err := stream.NewMemory(stream.Config{Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	site := &constantWeb{web.Page{Final: "http://h.test/", Status: 200, ContentType: "text/html",
		Body: []byte("<h1>x</h1>"),
	}}
	control := newControl(1, title)
	f := New(Config{Node: "n", Log: memory, Control: control, Web: site, IDs: &sequence{},
		ShardOf: func(string) int { return 0 }})
	pages, err := memory.Consume(stream.Pages, "bench")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	for f.Counts().Shards == 0 {
		<-time.After(time.Millisecond)
	}
	t.Cleanup(func() {
		cancel()
		<-done
		memory.Close()
	})
	return &pageLoop{memory: memory, pages: pages}
}

// run fetches n pages.
func (l *pageLoop) run(t testing.TB, n int) {
	ctx := t.Context()
	go func(from int) {
		for seq := from; seq < from+n; seq++ {
			task := model.Task{Job: jobID, Seq: uint32(seq), Customer: "c", Scraper: scraperID,
				Revision: 1, Budget: 1,
				URL:   fmt.Sprintf("http://host-%d.test/product/%d", seq%1000, seq),
				Tiers: model.TiersOf(model.Plain), Number: uint64(seq) + 1}
			_ = l.memory.Publish(ctx, stream.Tasks, 0, stream.EncodeTask(task))
		}
	}(l.next)
	l.next += n
	for got := 0; got < n; {
		messages, err := l.pages.Fetch(ctx, 1000)
		if err != nil {
			t.Fatal(err)
		}
		got += len(messages)
		_ = l.pages.Commit(ctx, messages)
	}
}

// BenchmarkPage measures what a page costs besides its exchange: from task to page record, with a
// minimal extraction.
func BenchmarkPage(b *testing.B) {
	l := newPageLoop(b)
	b.ReportAllocs()
	b.ResetTimer()
	l.run(b, b.N)
	b.StopTimer()
}
