package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Extract measures page → rows: each engine on its kind of pages, without fetching.
type Extract struct {
	Time   time.Duration `help:"Duration of each case." default:"1s"`
	Pages  string        `help:"Directory of saved real pages, which are read instead, also by goquery." placeholder:"DIR" type:"existingdir"`
	Half   string        `help:"Of these pages: tune, held or all." enum:"tune,held,all" default:"all"`
	Random int           `help:"Random recipes per page whose fields must equal goquery's." default:"20"`
}

// Help returns the help text.
func (*Extract) Help() string {
	return `One goroutine extracts rows from pages in memory: the page behind the project's figures, and pages of the synthetic web of
10, 28, 100 and 300 KB. Time is CPU time, including the garbage collector's.

If all fields are at the beginning of a page, extraction stops reading there; "a field is missing" makes it read everything.
If a scraper type asks for another page or a language model, it gets an empty answer, so the time is Shoal's own. MB/s counts
whole pages, whether or not they were read to the end.

With --pages, each parser reads each HTML file in and below the directory once, compressed with gzip or not. Copies count
once. Six typical fields are timed. These and random ones must equal the fields that goquery reads. The halves have no
site in common: a site is the host of the canonical address, or else the file.

Example: shoal bench extract --time 3s
         shoal bench extract --pages saved --half held`
}

// extractPages is the number of pages of a case: too many for the processor's caches.
const extractPages = 64

// extraction is one case.
type extraction struct {
	name   string
	recipe model.Recipe
	parser extract.Parser // that must have read the page
	pages  []extract.Page
}

// read makes the rows of a page.
func (c *extraction) read(extractor *extract.Extractor, p extract.Page) (extract.Result, error) {
	got, err := extractor.Extract(p)
	if err == nil && got.Ask != nil {
		got, err = withoutAnswers(extractor, p, got)
	}
	if err == nil && (len(got.Rows) == 0 || got.Parser != c.parser) {
		err = fmt.Errorf("%s: %d rows, parser %s", p.URL, len(got.Rows), got.Parser)
	}
	return got, err
}

// withoutAnswers continues the extraction as if every page that it asks for timed out.
func withoutAnswers(extractor *extract.Extractor, p extract.Page,
	got extract.Result) (_ extract.Result, err error) {
	for pages := []extract.Page{p}; err == nil && got.Ask != nil; got,
		err = extractor.Extract(pages...) {
		pages = append(pages, extract.Page{URL: got.Ask.URL, Asked: got.Ask.URL,
			Code: fault.PageTimeout, At: p.At})
	}
	return got, err
}

// Measure measures all cases.
func (m *Extract) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]time.Duration{"time": m.Time}); err != nil {
		return err
	}
	if m.Pages != "" {
		return m.measurePages(ctx, on, report)
	}
	cases, err := extractions()
	if err != nil {
		return err
	}
	table := report.table("Page → rows, one goroutine:", "case", "page, KB", "CPU a page, µs",
		"MB/s", "rows a page",
		"allocations a page", "KB allocated a page")
	for _, c := range cases {
		extractor, err := extract.Compile(c.recipe)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		on.Say("extract: %s", c.name)
		if err := m.measure(ctx, c, extractor, table); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (m *Extract) measure(ctx context.Context, c extraction, extractor *extract.Extractor,
	table *Table) error {
	var pages, rows, bytes int
	read := func(until func(pages int) bool) error {
		for pages = 0; !until(pages); pages++ {
			p := c.pages[pages%len(c.pages)]
			got, err := c.read(extractor, p)
			if err != nil {
				return err
			}
			rows, bytes = rows+len(got.Rows), bytes+len(p.Body)
		}
		return nil
	}
	// a warm-up
	if err := read(func(pages int) bool { return pages == len(c.pages) }); err != nil {
		return err
	}
	rows, bytes = 0, 0
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, err := ownCPU()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(m.Time)
	err = read(func(pages int) bool {
		return pages > 0 && pages%16 == 0 && (time.Now().After(deadline) || ctx.Err() != nil)
	})
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return err
	}
	now, err := ownCPU()
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	spent, n := now-cpu, float64(pages)
	table.add(c.name, float64(bytes)/n/1000, micros(spent)/n, float64(bytes)/1e6/spent.Seconds(),
		float64(rows)/n,
		float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n/1000)
	return nil
}
