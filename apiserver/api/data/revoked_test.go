package data_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/rowstore"
)

// struck is a store that calls strike before its third read.
type struck struct {
	rowstore.Store
	mu     sync.Mutex
	reads  int
	strike func()
}

func (s *struck) expect(strike func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads, s.strike = 0, strike
}

func (s *struck) reading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads++; s.reads == 3 {
		s.strike()
	}
}

func (s *struck) Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64,
	error) {
	s.reading()
	return s.Store.Scan(ctx, q)
}

func (s *struck) Rows(ctx context.Context, q rowstore.RowsQuery) ([]json.RawMessage, error) {
	s.reading()
	return s.Store.Rows(ctx, q)
}

// A long answer breaks off once its caller's share is revoked, whether the rows are read before or
// during the transfer. The owner's answer continues.
func TestLongAnswersOfARevokedShare(t *testing.T) {
	store := &struck{Store: apitest.NewStore(t), strike: func() {}}
	r := startOn(t, store)
	r.share(t)
	rows := make([]string, 8)
	for n := range rows {
		rows[n] = fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", 900_000))
	}
	r.run(t, r.shop, `{"n":9}`)
	r.run(t, r.shop, rows...)
	group := r.group.String()
	for _, path := range []string{
		"/api/scraper/data/export?format=jsonl&groupId=" + group,
		"/api/scraper/data/export?format=csv&groupId=" + group,
		"/api/scraper/data/export?format=parquet&scraperId=" + r.shop.String(),
		"/api/scraper/data/group/" + group + "/download?format=jsonl",
		"/api/scraper/data/group/" + group + "?size=100",
		"/api/scraper/data/diff?format=jsonl&from=" + r.jobs[3].String() + "&to=" +
			r.jobs[4].String(),
	} {
		t.Run(path, func(t *testing.T) {
			r.Client.Must(t, client.ShareGroup{Customer: "alice", Group: r.group,
				Emails: []string{"bob@x.test"}})
			store.expect(func() {})
			if whole, err := r.getAs(t, apitest.Other, path); err != nil ||
				len(whole) < 1_000_000 {
				t.Fatalf("%d bytes are shared: %v", len(whole), err)
			}
			store.expect(func() {
				r.Client.Must(t, client.RevokeShare{Customer: "alice", Group: r.group,
					Email: "bob@x.test"})
			})
			if part, err := r.getAs(t, apitest.Other, path); err == nil &&
				!strings.Contains(string(part), "not shared any more") {
				t.Errorf("%d bytes look whole", len(part))
			}
			if _, err := r.getAs(t, apitest.Reader, path); err != nil {
				t.Errorf("the owner: %v", err)
			}
		})
	}
}
