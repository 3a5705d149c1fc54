package unit

import (
	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// metrics are counted as pages pass. All label combinations are created at the start, so that a
// page costs only a few additions.
type metrics struct {
	pages   byTierAndOutcome
	bytes   byTierAndOutcome
	errors  map[string]prometheus.Counter // by page code
	parses  [extract.Parsers]prometheus.Counter
	seconds prometheus.Histogram // of a page, since its first request

	rejected prometheus.Counter // rows that do not fit their schema
	// questions to the language model, by the code of their failure; "": answered
	questions map[fault.Code]prometheus.Counter
}

// byTierAndOutcome has a row for each tier, and one for pages without a try.
type byTierAndOutcome [int(model.TierCount) + 1][int(model.Cancelled) + 1]prometheus.Counter

func newByTierAndOutcome(counters *prometheus.CounterVec) (all byTierAndOutcome) {
	for row := range all {
		tier := "none"
		if row > 0 {
			tier = model.Tier(row - 1).String()
		}
		for outcome := model.Delivered; outcome <= model.Cancelled; outcome++ {
			all[row][outcome] = counters.WithLabelValues(tier, outcome.String())
		}
	}
	return all
}

func (c *byTierAndOutcome) of(p *model.Page) prometheus.Counter {
	row := 0
	if n := len(p.Tries); n > 0 {
		row = int(p.Tries[n-1].Tier) + 1
	}
	return c[row][p.Outcome]
}

func newMetrics(to *telemetry.Metrics) *metrics {
	m := &metrics{
		pages: newByTierAndOutcome(to.Counters("shoal_fetcher_pages_total",
			"Pages passed on, by the last tier tried and the outcome.", "tier", "outcome")),
		bytes: newByTierAndOutcome(to.Counters("shoal_fetcher_page_bytes_total",
			"Bytes of bodies as received, by the page's last tier and outcome.", "tier",
			"outcome")),
		errors: map[string]prometheus.Counter{},
		seconds: to.Histogram("shoal_fetcher_page_seconds",
			"Time from a page's first request to its end, waits between tries included.",
			telemetry.SlowSeconds),
	}
	parses := to.Counters("shoal_fetcher_parses_total",
		"Pages parsed as HTML, by parser. Those of tree could not be read by streaming.", "parser")
	m.parses[extract.NoParser] = prometheus.NewCounter(prometheus.CounterOpts{}) // not exported
	for p := extract.Streaming; p < extract.Parsers; p++ {
		m.parses[p] = parses.WithLabelValues(p.String())
	}
	m.rejected = to.Counters("shoal_fetcher_rejected_rows_total",
		"Rows that did not fit their scraper's schema.").WithLabelValues()
	m.questions = map[fault.Code]prometheus.Counter{}
	questions := to.Counters("shoal_fetcher_model_questions_total",
		"Questions to the language model, by outcome.", "outcome")
	m.questions[""] = questions.WithLabelValues("answered")
	for _, code := range []fault.Code{fault.PageModel, fault.PageModelLimit, fault.PageTimeout} {
		m.questions[code] = questions.WithLabelValues(string(code))
	}
	errors := to.Counters("shoal_fetcher_page_errors_total",
		"Pages that ended with an error, by page code.", "code")
	for code, entry := range fault.Catalog() {
		if entry.Status == 0 {
			m.errors[string(code)] = errors.WithLabelValues(string(code))
		}
	}
	return m
}

// countPage counts a page that is passed on.
func (m *metrics) countPage(p *model.Page) {
	m.pages.of(p).Inc()
	m.bytes.of(p).Add(float64(p.Bytes))
	if p.Outcome == model.Errored {
		if counter := m.errors[p.Code]; counter != nil {
			counter.Inc()
		}
	}
	if len(p.Tries) > 0 {
		m.seconds.Observe(float64(p.Millis) / 1000)
	}
}
