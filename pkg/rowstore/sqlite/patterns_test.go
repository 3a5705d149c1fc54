package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/rowstore"
)

// TestPatternsOnLinksArePaid: one budget covers all links of a search.
func TestPatternsOnLinksArePaid(t *testing.T) {
	s, version := openStore(t), ids.ID{1}
	var links []rowstore.SiteLink
	for i := range uint32(1_000) {
		links = append(links, rowstore.SiteLink{Seq: i, Hash: uint64(i),
			Title: strings.Repeat("b", 6_000)})
	}
	if err := s.PutSiteLinks(t.Context(), version, links); err != nil {
		t.Fatal(err)
	}
	if err := s.FinishSite(t.Context(), version, 1_000); err != nil {
		t.Fatal(err)
	}
	f, err := filter.Parse([]byte(`{"title":{"regex":"` + strings.Repeat("a{0,999}", 3) + `z"}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.FindSiteLinks(t.Context(), rowstore.SiteQuery{Version: version, Limit: 10}, f)
	if fault.CodeOf(err) != fault.InvalidFilter {
		t.Errorf("%v", err)
	}
}

// TestPatternsOfAQueryArePaid: one budget covers all rows of a query, and says why it has ended.
func TestPatternsOfAQueryArePaid(t *testing.T) {
	p, err := pattern.Compile(strings.Repeat("a{0,999}", 3)+"z", 256)
	if err != nil {
		t.Fatal(err)
	}
	patterns := newPatterns()
	query := patterns.beginQuery(t.Context())
	args := []driver.Value{`{"a":"` + strings.Repeat("b", 6_000) + `"}`, "a", query.number(p)}
	rows := 0
	for ; err == nil && rows < 1_000; rows++ {
		_, err = patterns.match(nil, args)
	}
	if failure := query.failure(err); fault.CodeOf(failure) != fault.InvalidFilter || rows < 10 ||
		rows > 100 {
		t.Errorf("after %d rows: %v", rows, failure)
	}
	query.end()
	if _, err := patterns.match(nil, args); err == nil || len(patterns.used) != 0 {
		t.Errorf("after the query's end: %v, %d patterns", err, len(patterns.used))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	query = patterns.beginQuery(ctx)
	defer query.end()
	args = []driver.Value{`{"a":"` + strings.Repeat("b", 100_000) + `"}`, "a", query.number(p)}
	if _, err := patterns.match(nil, args); !errors.Is(query.failure(err), context.Canceled) {
		t.Errorf("for somebody who has gone: %v", err)
	}
}
