package unit

import (
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// shown returns the fetcher counters that are not zero: "name{label values}" → value.
func shown(t *testing.T, m *telemetry.Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "shoal_fetcher_")
		if !ours {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				metric.GetHistogram().GetSampleSum()
			if value != 0 {
				all[name+"{"+strings.Join(labels, ",")+"}"] = value
			}
		}
	}
	return all
}

func TestPagesAreCountedByTierAndOutcome(t *testing.T) {
	to := telemetry.NewMetrics()
	m := newMetrics(to)
	delivered := &model.Page{Outcome: model.Delivered, Bytes: 100, Millis: 1500,
		Tries: []model.Try{{Tier: model.Plain, Code: "blocked"}, {Tier: model.RenderSuper}}}
	m.countPage(delivered)
	m.countPage(delivered)
	m.countPage(&model.Page{Outcome: model.Errored, Code: string(fault.PageTimeout), Bytes: 7,
		Tries: []model.Try{{Tier: model.Plain}}})
	m.countPage(&model.Page{Outcome: model.Errored, Code: "a code that nobody knows"})
	m.countPage(&model.Page{Outcome: model.Cancelled})
	m.parses[extract.Streaming].Inc()
	m.parses[extract.Streaming].Inc()
	m.parses[extract.Tree].Inc()
	m.parses[extract.NoParser].Inc()
	got := shown(t, to)
	for name, want := range map[string]float64{
		"pages_total{delivered,render+super}": 2, "page_bytes_total{delivered,render+super}": 200,
		"pages_total{errored,plain}": 1, "page_bytes_total{errored,plain}": 7,
		"pages_total{errored,none}": 1, "pages_total{cancelled,none}": 1,
		"page_errors_total{timeout}": 1, "page_seconds{}": 3,
		"parses_total{streaming}": 2, "parses_total{tree}": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("and %v", got)
	}
}

// TestPagesAreCountedForNothing: counting a page allocates no memory.
func TestPagesAreCountedForNothing(t *testing.T) {
	m := newMetrics(telemetry.NewMetrics())
	page := &model.Page{Outcome: model.Errored, Code: string(fault.PageTimeout),
		Tries: []model.Try{{Tier: model.Plain}}}
	if allocated := testing.AllocsPerRun(100, func() { m.countPage(page) }); allocated > 0 {
		t.Errorf("a page costs %g allocations", allocated)
	}
}

// BenchmarkPageMetrics measures the cost of counting a page.
func BenchmarkPageMetrics(b *testing.B) {
	m := newMetrics(telemetry.NewMetrics())
	page := &model.Page{Outcome: model.Delivered, Bytes: 100, Millis: 35,
		Tries: []model.Try{{Tier: model.Plain}}}
	b.ReportAllocs()
	for b.Loop() {
		m.countPage(page)
	}
}
