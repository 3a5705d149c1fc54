package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// longestLine bounds a line of the log about something that went well, in bytes.
const longestLine = 400

// TestLogOfRuns: by default a run or call that went well costs at most one short line of the log,
// however many pages a run has. What else is told comes less often than runs.
func TestLogOfRuns(t *testing.T) {
	t.Parallel()
	const runs, pages = 3, 60
	web := newWeb(t, synthweb.Config{Hosts: pages, PagesPerHost: 1, PageBytes: []int{2500},
		MaxLatency: 20 * time.Millisecond})
	s := newService(t, web, suite.Fast()...)
	s.Fill(s.Client, suite.Plenty)
	others := len(s.linesOfLog()) // of the start
	for range runs {
		o := suite.ProductOrder(s.Client, slices.Collect(web.URLs(pages)))
		suite.Must(s.Report(suite.Within(t, suite.Patience), o.Launch(t)))(t)
	}
	lines := s.linesOfClosed(runs)
	most := s.calls() // each line's call was counted before
	told := map[string]int{}
	for i, line := range lines {
		kind := kindOfLine(line)
		if _, of := most[kind]; !of {
			if i < others {
				continue
			}
			most[kind] = runs - 1
		}
		told[kind]++
		if len(line) > longestLine {
			t.Errorf("a line has %d bytes: %s", len(line), line)
		}
	}
	most[closedLine] = runs // linesOfClosed has waited for as many
	for kind, n := range told {
		if n > most[kind] {
			t.Errorf("%d lines tell of %q, want at most %d:\n%s", n, kind, most[kind],
				bytes.Join(lines, []byte("\n")))
		}
	}
}

// closedLine is the kind of line that tells of a run's end.
const closedLine = `msg="run closed"`

var lineKinds = regexp.MustCompile(`msg=call .*?(operation=\S+)|msg="[^"]*"|msg=\S+`)

// kindOfLine returns the operation of a line about a call, else a line's message.
func kindOfLine(line []byte) string {
	found := lineKinds.FindSubmatch(line)
	if found == nil {
		return string(line)
	}
	if len(found[1]) > 0 {
		return string(found[1])
	}
	return string(found[0])
}

// linesOfClosed returns linesOfLog once they tell the end of that many runs.
func (s *service) linesOfClosed(runs int) [][]byte {
	s.T.Helper()
	for within := suite.Within(s.T, suite.Patience); ; {
		lines := s.linesOfLog()
		if bytes.Count(bytes.Join(lines, nil), []byte(closedLine)) == runs {
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

// calls counts the calls so far, by kindOfLine.
func (s *service) calls() map[string]int {
	s.T.Helper()
	calls, labels := map[string]int{}, regexp.MustCompile(
		`^shoal_apiserver_calls_total\{.*operation="([^"]*)"`)
	for name, value := range suite.Must(s.Metrics(s.T.Context()))(s.T) {
		if found := labels.FindStringSubmatch(name); found != nil {
			calls["operation="+found[1]] += int(value)
		}
	}
	return calls
}
