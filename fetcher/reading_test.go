package fetcher

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// A page whose reading panics ends as unparsable and uncharged, and is saved for inspection. All
// others are read: pages of runs, and of samples and previews, which are trials.
func TestPanicOfAReader(t *testing.T) {
	for name, trial := range map[string]bool{"run": false, "trial": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, title, func(r *rig, config *Config) {
					if trial {
						r.control.jobs[jobID].Source = model.SourcePreviewURL
					}
					config.Reader = NewReader(ReaderConfig{Dir: dir, Clock: config.Clock})
					config.Extractions = 1 // the place must be given back
					config.Reading = func(p extract.Page) {
						if p.URL == "http://a.test/bad" {
							panic("a reader's")
						}
					}
				})
				defer stop()
				r.send(r.task(0, "http://a.test/bad"), r.task(1, "http://a.test/good"))
				got := map[uint32]*model.Page{}
				for _, p := range r.pages(2) {
					got[p.Unit.Seq] = p
				}
				if p := got[0]; p.Outcome != model.Errored ||
					p.Code != string(fault.PageUnparsable) || p.PriceRow != "" || !p.Last {
					t.Errorf("the page whose reading panics: %+v", p)
				}
				if p := got[1]; p.Outcome != model.Delivered {
					t.Errorf("the other page: %+v", p)
				}
			})
			if kept, err := os.ReadDir(dir); err != nil || len(kept) != 2 {
				t.Errorf("kept: %v, %v", kept, err)
			}
		})
	}
}

// narrowLog is a log whose topic takes only short records.
type narrowLog struct{ stream.Log }

func (l narrowLog) Publish(ctx context.Context, topic stream.Topic, partition int,
	records ...[]byte) error {
	for _, record := range records {
		if len(record) > 10_000 {
			return fmt.Errorf("publish: %w", stream.ErrTooLarge)
		}
	}
	return l.Log.Publish(ctx, topic, partition, records...)
}

// A page that the log refuses for its size is an error of its link. It holds up no other.
func TestPageTooLargeForTheLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Log = narrowLog{r.memory}
		})
		defer stop()
		r.web.at("http://a.test/large", func(context.Context, web.Request) (*web.Page, error) {
			return r.web.html("http://a.test/large",
				"<h1>"+strings.Repeat("x", 20_000)+"</h1>"), nil
		})
		r.send(r.task(0, "http://a.test/large"), r.task(1, "http://a.test/good"))
		got := map[uint32]*model.Page{}
		for _, p := range r.pages(2) {
			got[p.Unit.Seq] = p
		}
		if p := got[0]; p.Outcome != model.Errored || p.Code != string(fault.PageRowTooLarge) ||
			p.PriceRow != "" || len(p.Rows) > 0 || !p.Last {
			t.Errorf("the page that is too large: %+v", p)
		}
		if p := got[1]; p.Outcome != model.Delivered {
			t.Errorf("the other page: %+v", p)
		}
		if c := r.f.Counts(); c.Refused != 1 || c.Open != 0 {
			t.Errorf("%+v", c)
		}
	})
}
