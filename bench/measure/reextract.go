package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/process"
)

// ReExtract measures how much faster kept pages are re-read than crawled.
type ReExtract struct {
	Pages  int `help:"Pages of each run, at most 100,000." default:"100000"`
	Rounds int `help:"Number of rounds, each a crawl that keeps bodies and then a re-extraction." default:"3"`
}

// Help returns the help text.
func (*ReExtract) Help() string {
	return `A list run keeps the bodies of its pages (config.keepBodyDays) and ends when every page is stored and charged. Then the run
is read again from the kept bodies, until its rows are visible. Politeness does not limit the crawl, so its pace is the
highest on this machine. Client and web are separate processes and do not count.

Example: shoal bench re-extract --pages 20000`
}

const (
	reExtractFactor = 3 // how much faster it must be
	maxReExtracted  = 100_000
)

// reExtracted is the cost of a round.
type reExtracted struct{ crawl, again reading }

func (r reExtracted) factor() float64 { return r.crawl.wall.Seconds() / r.again.wall.Seconds() }

// Measure measures all rounds.
func (m *ReExtract) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]int{"pages": m.Pages, "rounds": m.Rounds}); err != nil {
		return err
	}
	if m.Pages > maxReExtracted {
		return fmt.Errorf("--pages: %w: at most %d", ErrFlags, maxReExtracted)
	}
	var found []reExtracted
	for round := range m.Rounds {
		r, err := m.measure(ctx, on)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		on.Say("re-extract: round %d: crawled in %s, read again in %s", round+1,
			r.crawl.wall.Round(time.Millisecond), r.again.wall.Round(time.Millisecond))
		found = append(found, r)
	}
	table := report.table(fmt.Sprintf("%d pages, one process, %d requests under way; medians of "+
		"%d rounds:", m.Pages, loopConcurrency, m.Rounds), "run", "pages/s", "CPU a page, µs")
	add := func(name string, of func(reExtracted) reading) {
		table.add(name, median(found, func(r reExtracted) float64 {
			return float64(m.Pages) / of(r).wall.Seconds()
		}), median(found, func(r reExtracted) float64 {
			return micros(of(r).cpu) / float64(m.Pages)
		}))
	}
	add("the crawl that keeps bodies", func(r reExtracted) reading { return r.crawl })
	add("the re-extract of them", func(r reExtracted) reading { return r.again })
	factor := median(found, reExtracted.factor)
	table.add("times the pace of the crawl", factor)
	report.atMost("the crawl's pace as a share of the re-extract's", 1/factor,
		1.0/reExtractFactor, "")
	return nil
}

// measure runs one round, on a fresh web and service.
func (m *ReExtract) measure(ctx context.Context, on *Bench) (r reExtracted, err error) {
	w, err := on.startWeb(ctx, page.Web(m.Pages+1))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	s, err := on.fresh(ctx, nil, []*web{w}, unbounded(loopConcurrency/len(w.Hosts()))...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	addresses := slices.Collect(w.URLs(m.Pages + 1))
	run, err := s.keeper(ctx, addresses[0])
	if err != nil {
		return r, err
	}
	r.crawl, err = s.timed(func() error {
		err := s.Again("crawl").Call(ctx, "POST", "/api/scraper/url-list-run", nil,
			map[string]any{"scraperId": run.ScraperID, "force": true, "urls": addresses[1:]},
			&run)
		if err == nil {
			_, _, err = s.Finished(ctx, run)
		}
		return err
	})
	if err != nil {
		return r, err
	}
	var again api.Launched
	r.again, err = s.timed(func() error {
		err := s.Again("again").Call(ctx, "POST", "/api/scraper/"+run.ScraperID+"/re-extract",
			nil, map[string]any{"jobId": run.JobID}, &again)
		if err == nil {
			_, err = s.Follow(ctx, again.JobID, nil)
		}
		return err
	})
	if err != nil {
		return r, err
	}
	for _, made := range []api.Launched{run, again} {
		job, err := s.Job(ctx, made)
		if err != nil || job.SuccessLinks != int64(m.Pages) {
			return r, errors.Join(err, fmt.Errorf("run %s ended %s with %d of %d pages",
				made.JobID, job.State, job.SuccessLinks, m.Pages))
		}
	}
	return r, nil
}

// keeper makes a list scraper that keeps bodies from now on.
func (s *service) keeper(ctx context.Context, address string) (run api.Launched, err error) {
	order := api.Order{Who: s.Client, Kind: model.SingleProduct, Fields: page.Fields(false),
		URLs: []string{address}}
	if run, err = launch(ctx, order); err != nil {
		return run, err
	}
	if _, _, err = s.Finished(ctx, run); err != nil {
		return run, err
	}
	scraper := map[string]any{}
	if err := s.Call(ctx, "GET", "/api/scraper/"+run.ScraperID, nil, nil, &scraper); err != nil {
		return run, err
	}
	scraper["config"] = map[string]any{"keepBodyDays": 1}
	return run, s.Again("keep").Call(ctx, "PUT", "/api/scraper", nil, scraper, nil)
}

// timed measures what calls cost the service.
func (s *service) timed(calls func() error) (took reading, err error) {
	var before, after process.Usage
	if before, err = s.Usage(); err != nil {
		return took, err
	}
	begun := time.Now()
	if err := calls(); err != nil {
		return took, err
	}
	took.wall = time.Since(begun)
	after, err = s.Usage()
	took.cpu = after.CPU - before.CPU
	return took, err
}
