package fetcher

import (
	"os"
	"testing"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
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
