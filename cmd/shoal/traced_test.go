package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/commands"
	"shoal.dev/shoal/cmd/shoal/internal/demo"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/testkit/synthweb"
)

const tracedPages = 3 // covered by free requests

// runSmall runs a list of tracedPages pages to its end and returns the job.
func runSmall(t *testing.T, web *synthweb.Web, data, server, name string) string {
	t.Helper()
	client, err := (&commands.Connection{Data: data, Server: server}).Client(quietTerminal())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	group, err := commands.EnsureGroup(t.Context(), client, "traced")
	if err != nil {
		t.Fatal(err)
	}
	items, err := json.Marshal(synthweb.ProductFields())
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Join(slices.Collect(web.URLs(tracedPages)), "\n")
	answer, err := client.RunList(t.Context(),
		url.Values{"groupId": {group.ID}, "name": {name},
			"itemsConfig": {string(items)}},
		func() io.Reader { return strings.NewReader(list) }, int64(len(list)), "text/uri-list")
	if err != nil {
		t.Fatal(err)
	}
	launched := answer.Value
	if _, err := client.Follow(t.Context(), launched.JobID, func(api.Progress) {}); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, err := range client.Rows(t.Context(), api.RowQuery{JobID: launched.JobID}) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	if rows != tracedPages {
		t.Fatalf("%d rows, want %d", rows, tracedPages)
	}
	return launched.JobID
}

func products() synthweb.Config {
	return synthweb.Config{Seed: 1, Hosts: tracedPages, PagesPerHost: 1, PageBytes: []int{2_000},
		Mix:    synthweb.Products(),
		Robots: []synthweb.Robots{synthweb.RobotsAbsent}}
}

// TestTraceLeadsFromTheCallToTheSettledRow traces each page of a run back to the call that launched
// it.
func TestTraceLeadsFromTheCallToTheSettledRow(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	var spans tracetest.SpanStubs
	var job string
	web := startWeb(t, products())
	tracer := telemetry.NewTracerTo(exporter,
		telemetry.TraceConfig{Ratio: 1, Node: service.NodeName})
	whileServing(t, web, nil, tracer, func(demo *demo.Command, server string) {
		job = runSmall(t, web, demo.Data, server, "traced")
	})
	spans = exporter.GetSpans()
	byID := map[trace.SpanID]tracetest.SpanStub{}
	for _, span := range spans {
		byID[span.SpanContext.SpanID()] = span
	}
	settled := 0
	for _, span := range spans {
		if span.Name != "billing.settle" {
			continue
		}
		settled++
		way := []string{}
		for at := span; ; at = byID[at.Parent.SpanID()] {
			way = append(way, at.Name)
			if attribute(at, "job") != job ||
				at.SpanContext.TraceID() != span.SpanContext.TraceID() {
				t.Errorf("%s of run %s in trace %s, want run %s in trace %s", at.Name,
					attribute(at, "job"),
					at.SpanContext.TraceID(), job, span.SpanContext.TraceID())
			}
			if at.EndTime.Before(at.StartTime) || len(way) > 5 {
				t.Fatalf("%s from %s to %s", at.Name, at.StartTime, at.EndTime)
			}
			if !at.Parent.IsValid() {
				break
			}
		}
		want := []string{"billing.settle", "ingest.store", "fetch.page", "dispatch.extend",
			"api.call"}
		if !slices.Equal(way, want) {
			t.Errorf("the way back is %v, want %v", way, want)
		}
	}
	if settled != tracedPages {
		t.Errorf("%d pages are traced to their settlement, want %d", settled, tracedPages)
	}
}

func attribute(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.AsString()
		}
	}
	return ""
}

// TestLogLinesSayWhatTheyAreAbout: every line has node and role, lines about calls the correlation
// id, and lines about runs the run.
func TestLogLinesSayWhatTheyAreAbout(t *testing.T) {
	var job string
	web := startWeb(t, products())
	data := whileServing(t, web, nil, nil, func(demo *demo.Command, server string) {
		job = runSmall(t, web, demo.Data, server, "traced")
	})
	log, err := os.ReadFile(filepath.Join(data, "shoal.log"))
	if err != nil {
		t.Fatal(err)
	}
	launched, closed := false, false
	for line := range strings.Lines(string(log)) {
		// lines about the process
		whole := strings.Contains(line, " msg=starting ") || strings.Contains(line, " msg=stopped ")
		if !strings.Contains(line, " node="+service.NodeName) || !whole &&
			!strings.Contains(line, " role=") {
			t.Errorf("no node or no role: %s", line)
		}
		if strings.Contains(line, " msg=call ") && !strings.Contains(line, " correlationId=") {
			t.Errorf("a call without its correlation id: %s", line)
		}
		launched = launched || strings.Contains(line, "=svc_run_scraper_url_list ") &&
			strings.Contains(line, " job="+job)
		closed = closed || strings.Contains(line, `msg="run closed"`) &&
			strings.Contains(line, " job="+job)
	}
	if !launched || !closed {
		t.Errorf("launched %v, closed %v:\n%s", launched, closed, log)
	}
}

// TestWhatGoesWellIsOneShortLine: each successful run and call logs one line of at most 400 bytes,
// and nothing else is logged.
func TestWhatGoesWellIsOneShortLine(t *testing.T) {
	const runs = 3
	web := startWeb(t, products())
	var before int
	jobs := map[string]bool{}
	data := whileServing(t, web, nil, nil, func(demo *demo.Command, server string) {
		connect := &commands.Connection{Data: demo.Data, Server: server}
		customer, err := connect.Self(t.Context(), quietTerminal())
		if err == nil {
			_, err = commands.Adjust(t.Context(), quietTerminal(), connect, customer, 1_000_000, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		runSmall(t, web, demo.Data, server, "first")
		log, err := os.ReadFile(filepath.Join(demo.Data, "shoal.log"))
		if err != nil {
			t.Fatal(err)
		}
		before = len(log)
		for n := range runs {
			jobs[runSmall(t, web, demo.Data, server, fmt.Sprint("run ", n))] = true
		}
	})
	log, err := os.ReadFile(filepath.Join(data, "shoal.log"))
	if err != nil {
		t.Fatal(err)
	}
	closed, calls := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(log[before:])) {
		switch {
		case strings.Contains(line, " msg=stopped "):
			if len(closed) < runs {
				t.Fatalf("%d of %d runs are closed when the service stops", len(closed), runs)
			}
			return
		case strings.Contains(line, ` msg="run closed" `):
			closed[field(line, "job")]++
		case strings.Contains(line, " msg=call "):
			calls[field(line, "correlationId")]++
		case strings.Contains(line, ` role=billing `) &&
			strings.Contains(line, "the ledger has been held against the page records"):
			// the daily check, which ends some time after the start
		default:
			t.Errorf("neither a call nor a run: %s", line)
		}
		if len(line) > 400 || closed[field(line, "job")] > 1 ||
			calls[field(line, "correlationId")] > 1 {
			t.Errorf("long, or not the only one: %s", line)
		}
	}
	t.Errorf("%d runs, %d closed, %d calls, and no end", len(jobs), len(closed), len(calls))
}

// field returns a field's value in a line of the log.
func field(line, name string) string {
	_, rest, _ := strings.Cut(line, " "+name+"=")
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return value
}
