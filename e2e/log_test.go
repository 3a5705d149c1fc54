package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// longestLine bounds a line of the log about something that went well, in bytes.
const longestLine = 400

// TestLogOfRuns: by default a run or call that went well costs at most one short line of the log,
// however many pages a run has.
func TestLogOfRuns(t *testing.T) {
	t.Parallel()
	const runs, pages = 3, 60
	web := newWeb(t, synthweb.Config{Hosts: pages, PagesPerHost: 1, PageBytes: []int{2500},
		MaxLatency: 20 * time.Millisecond})
	s := newService(t, web, suite.Fast()...)
	s.Fill(s.Client, suite.Plenty)
	lines := s.linesOfLog()
	events := s.events()
	for range runs {
		o := suite.ProductOrder(s.Client, slices.Collect(web.URLs(pages)))
		suite.Must(s.Report(suite.Within(t, suite.Patience), o.Launch(t)))(t)
	}
	written := s.linesOfClosed(runs)[len(lines):]
	events = s.events() - events // each line's event happened before
	for _, line := range written {
		if len(line) > longestLine {
			t.Errorf("a line has %d bytes: %s", len(line), line)
		}
	}
	if len(written) > events {
		t.Errorf("%d calls and runs wrote %d lines:\n%s", events, len(written),
			bytes.Join(written, []byte("\n")))
	}
}

// linesOfClosed returns linesOfLog once they tell the end of that many runs.
func (s *service) linesOfClosed(runs int) [][]byte {
	s.T.Helper()
	for within := suite.Within(s.T, suite.Patience); ; {
		lines := s.linesOfLog()
		if bytes.Count(bytes.Join(lines, nil), []byte(`msg="run closed"`)) == runs {
			return lines
		}
		select {
		case <-within.Done():
			s.T.Fatalf("the log tells no end of %d runs", runs)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// linesOfLog returns the lines of the log about what went well, but for background work, which is
// done now and then.
func (s *service) linesOfLog() (lines [][]byte) {
	s.T.Helper()
	logged := suite.Must(os.ReadFile(filepath.Join(s.data, "shoal.log")))(s.T)
	for line := range bytes.Lines(logged) {
		if bytes.Contains(line, []byte(" level=INFO ")) &&
			!bytes.Contains(line, []byte(` msg="billing: `)) {
			lines = append(lines, bytes.TrimSpace(line))
		}
	}
	return lines
}

// events counts the calls and the runs so far.
func (s *service) events() (n int) {
	s.T.Helper()
	for name, value := range suite.Must(s.Metrics(s.T.Context()))(s.T) {
		if strings.HasPrefix(name, "shoal_apiserver_calls_total{") ||
			strings.HasPrefix(name, "shoal_controlplane_runs_closed_total{") {
			n += int(value)
		}
	}
	return n
}
