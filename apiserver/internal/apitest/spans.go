package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// CheckSpans checks a list's answers to from and to against the times of its rows, newest first.
// The oldest, the middle and the newest time must differ.
func (s *Server) CheckSpans(t *testing.T, path string, idOf []string, times []time.Time) {
	t.Helper()
	stamp := func(at time.Time) string { return url.QueryEscape(at.Format(time.RFC3339Nano)) }
	check := func(name, query string, first, end int) {
		t.Helper()
		got, total := s.listed(t, path+"?"+query)
		if want := idOf[first:end]; !slices.Equal(got, want) || total != len(want) {
			t.Errorf("%s %s: %v of %d, want %v", path, name, got, total, want)
		}
	}
	last := len(times) - 1
	middle := times[last/2]
	first := slices.IndexFunc(times, func(at time.Time) bool { return at.Before(middle) })
	since := slices.IndexFunc(times, func(at time.Time) bool { return !at.After(middle) })
	newest := slices.IndexFunc(times, func(at time.Time) bool { return at.Before(times[0]) })
	check("from is within", "from="+stamp(middle), 0, first)
	check("a millisecond later", "from="+stamp(middle.Add(time.Millisecond)), 0, since)
	check("to is not within", "to="+stamp(middle), first, len(times))
	check("to a millisecond later", "to="+stamp(middle.Add(time.Millisecond)), since, len(times))
	check("both", "from="+stamp(middle)+"&to="+stamp(times[0]), newest, first)
	check("an offset", "from="+url.QueryEscape(middle.In(time.FixedZone("", 7200)).
		Format(time.RFC3339Nano)), 0, first)
	check("empty", "from="+stamp(middle)+"&to="+stamp(middle), 0, 0)
	check("of later", "from="+stamp(times[0].Add(time.Hour)), 0, 0)
	check("of before", "to="+stamp(times[last]), 0, 0)
	s.checkSpansRefused(t, path, stamp(times[0]), stamp(times[last]))
	theirs := s.Call(t, Scenario{As: Other, Do: "GET " + path + "?from=" + stamp(times[last])})
	for _, id := range idOf {
		if bytes.Contains(theirs.Body, []byte(id)) {
			t.Errorf("%s shows another customer %s", path, id)
		}
	}
}

// checkSpansRefused checks that bad times are refused by their names.
func (s *Server) checkSpansRefused(t *testing.T, path, late, early string) {
	t.Helper()
	for query, field := range map[string]string{"from=yesterday": "from", "to=2026-01-02": "to",
		"to=1960-01-01T00:00:00Z": "to", "from=" + late + "&to=" + early: "from"} {
		s.Run(t, Scenario{Name: path + " " + query, As: User, Do: "GET " + path + "?" + query,
			Status: 400, Code: "invalid_request", Has: map[string]any{"errors.0.field": field}})
	}
	s.Run(t, Scenario{Name: path + " unknown", As: User, Do: "GET " + path + "?until=" + late,
		Status: 400, Code: "unknown_parameter"})
}

// listed returns the ids on all pages of a list, two per page, and its total. A list by cursor,
// whose path ends in /all, has no total, so its ids are counted.
func (s *Server) listed(t *testing.T, path string) (got []string, total int) {
	t.Helper()
	byCursor := strings.Contains(path, "/all?")
	for number, step := 0, "&limit=2"; ; number++ {
		if !byCursor {
			step = fmt.Sprintf("&size=2&page=%d", number)
		}
		var page struct {
			Content, Items []struct {
				ID string `json:"id"`
			}
			NextCursor    *string
			TotalElements int
		}
		body := s.Call(t, Scenario{As: Reader, Do: "GET " + path + step}).Body
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatalf("%s: %v: %s", path, err, body)
		}
		for _, row := range append(page.Content, page.Items...) {
			got = append(got, row.ID)
		}
		switch {
		case byCursor && page.NextCursor == nil:
			return got, len(got)
		case byCursor:
			step = "&limit=2&cursor=" + url.QueryEscape(*page.NextCursor)
		case len(page.Content) == 0:
			return got, page.TotalElements
		}
	}
}
