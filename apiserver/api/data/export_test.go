package data_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const exportPath = "GET /api/scraper/data/export"

func TestExport(t *testing.T) { onStores(t, exported) }

func exported(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	put := client.PutScraper{ID: r.shop, Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct,
			ItemsConfig: []model.Field{{Name: "sku", Selector: "b", Kind: model.Text},
				{Name: "name", Selector: "h1", Kind: model.Text}}}}
	r.Client.Must(t, put)
	group, shop := "&groupId="+r.group.String(), "&scraperId="+r.shop.String()
	job := func(n int) string { return "&jobId=" + r.jobs[n].String() }
	rows := func(query, want string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader,
			Do: exportPath + "?format=jsonl" + query, Status: 200,
			Headers: map[string]string{"Content-Type": "application/x-ndjson"},
			Check: func(t *testing.T, a apitest.Answer) {
				got := ""
				for line := range strings.Lines(string(a.Body)) {
					var row struct{ N int }
					if err := json.Unmarshal([]byte(line), &row); err != nil {
						t.Fatalf("%q: %v", line, err)
					}
					got += fmt.Sprint(row.N)
				}
				if got != want {
					t.Errorf("rows %s, want %s", got, want)
				}
			}}
	}
	file := func(query, want string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader, Do: exportPath + query,
			Status: 200,
			Headers: map[string]string{"Content-Type": "text/csv; charset=utf-8",
				"Content-Disposition": "*"},
			Check: func(t *testing.T, a apitest.Answer) {
				if string(a.Body) != want {
					t.Errorf("%q, want %q", a.Body, want)
				}
			}}
	}
	named := func(query, want string) apitest.Scenario {
		return apitest.Scenario{Name: want, As: apitest.Reader, Do: exportPath + "?" + query,
			Status: 200, Headers: map[string]string{
				"Content-Disposition": `attachment; filename="rows-` + want + `"`}}
	}
	refused := func(who, query string, status int, code string) apitest.Scenario {
		return apitest.Scenario{Name: code, As: who, Do: exportPath + query, Status: status,
			Code: code}
	}
	r.Run(t,
		rows(group, "12345678"), rows(shop, "123678"), rows(job(1), "45"),
		rows(shop+"&isLastRun=true", "678"), rows(group+"&isLastRun=true", "45678"),
		rows(group+"&limit=5", "12345"), rows(group+"&limit=1", "1"),
		rows(job(0)+"&scraperId="+r.other.String(), ""),
		rows(group+"&"+filters(`{"name":{"in":["a","h",null]}}`), "1378"),
		file("?fields=name,n&jobId="+r.jobs[0].String(), "name,n\na,1\nb,2\n,3\n"),
		file("?jobId="+r.jobs[0].String(), "sku,name,n,_scrapedAt\n"+
			",a,1,2026-01-02T03:04:01.000Z\n,b,2,2026-01-02T03:04:02.000Z\n"+
			",,3,2026-01-02T03:04:03.000Z\n"),
		file("?bom=true&guard=false&fields=n&limit=1&groupId="+r.group.String(), "\ufeffn\n1\n"),
		// A file has the name of the least that was asked for.
		named(group, r.group.String()+".csv"), named(shop+group, r.shop.String()+".csv"),
		named(job(0)+shop+group, r.jobs[0].String()+".csv"),
		named("format=jsonl"+group, r.group.String()+".jsonl"),
		named("format=parquet"+shop, r.shop.String()+".parquet"),
		named("format=xlsx"+job(1), r.jobs[1].String()+".xlsx"),
		refused(apitest.Nobody, "?groupId="+r.group.String(), 401, "unauthorized"),
		refused(apitest.Other, "?groupId="+r.group.String(), 400, "not_found"),
		refused(apitest.Other, "?jobId="+r.jobs[0].String(), 400, "job_not_found"),
		refused(apitest.User, "?scraperId="+unknown, 404, "scraper_not_found"),
		refused(apitest.User, "", 400, "invalid_request"),
		refused(apitest.User, "?format=ods&groupId="+r.group.String(), 400, "invalid_request"),
		refused(apitest.User, "?filters=x&groupId="+r.group.String(), 400, "invalid_filter"),
	)
}

// scanned is a store that records the size of each part, and fails a chosen read.
type scanned struct {
	rowstore.Store
	// A server may still be reading after its client got its answer or lost it.
	mu    sync.Mutex
	reads []int
	fail  int // number of the read that fails, from 1
	// if not nil, called before each read
	reading func(read int)
	// if not nil, each read signals its begin and waits until held is closed
	held    chan struct{}
	began   chan struct{}
	counted func() // if not nil, called after rows were counted
}

func (s *scanned) CountUpto(ctx context.Context, scopes []rowstore.Scope, upto int64) (int64,
	error) {
	there, err := s.Store.CountUpto(ctx, scopes, upto)
	if s.counted != nil {
		s.counted()
	}
	return there, err
}

func (s *scanned) Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage,
	int64, error) {
	if s.held != nil {
		s.began <- struct{}{}
		<-s.held
		return s.Store.Scan(ctx, q)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != nil {
		s.reading(len(s.reads) + 1)
	}
	if len(s.reads)+1 == s.fail {
		return nil, 0, fmt.Errorf("the disk is gone")
	}
	rows, last, err := s.Store.Scan(ctx, q)
	bytes := 0
	for _, row := range rows {
		bytes += len(row)
	}
	s.reads = append(s.reads, bytes)
	return rows, last, err
}

// expect forgets the reads so far. The read with number fail will fail (0: none), and reading is
// called before each read.
func (s *scanned) expect(fail int, reading func(read int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads, s.fail, s.reading = nil, fail, reading
}

// read returns the size of each part that was read.
func (s *scanned) read() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reads)
}

// Long rows are never in memory together, and a broken-off file does not look complete.
func TestExportLongRows(t *testing.T) {
	store := &scanned{Store: apitest.NewStore(t)}
	r := startOn(t, store)
	rows := make([]string, 8)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", 900_000))
	}
	r.run(t, r.other, rows...)
	path := "/api/scraper/data/export?format=jsonl&jobId=" + r.jobs[len(r.jobs)-1].String()
	store.expect(0, nil)
	body, err := r.get(t, path)
	if err != nil || strings.Count(string(body), "\n") != len(rows) {
		t.Errorf("%d bytes: %v", len(body), err)
	}
	reads := store.read()
	if most := slices.Max(reads); most > 1<<20+1_000_000 || len(reads) < 4 {
		t.Errorf("parts of %v bytes", reads)
	}
	store.expect(1, nil) // if nothing has been sent, the client gets an error
	r.Run(t, apitest.Scenario{Name: "first part", As: apitest.Reader, Do: "GET " + path,
		Status: 500, Code: "internal_error"})
	store.expect(3, nil)
	if body, err := r.get(t, path); err == nil {
		t.Errorf("a part of %d bytes looks whole", len(body))
	}
	for _, read := range []int{1, 3} { // the customer is blocked meanwhile
		store.expect(0, func(now int) {
			if now == read {
				r.Client.Must(t, client.BlockCustomer{Customer: "alice", By: "root"})
			}
		})
		body, err := r.get(t, path)
		if whole := err == nil && strings.Count(string(body), "\n") == len(rows); whole ||
			len(store.read()) == len(rows) {
			t.Errorf("blocked at read %d: %d bytes after %d reads", read, len(body),
				len(store.read()))
		}
		r.Client.Must(t, client.UnblockCustomer{Customer: "alice"})
	}
}

// A file does not look complete if some of its rows were removed while it was read.
func TestReadsOfRowsThatGo(t *testing.T) {
	store := &scanned{Store: apitest.NewStore(t)}
	r := startOn(t, store)
	long := strings.Repeat("x", 900_000)
	for n := range 2 {
		r.run(t, r.other, fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, long),
			fmt.Sprintf(`{"n":%d,"text":"%s"}`, n+2, long))
	}
	gone := r.jobs[len(r.jobs)-1]
	for _, path := range []string{"/api/scraper/data/export?format=jsonl&scraperId=" +
		r.other.String(), "/api/customer/export"} {
		store.expect(0, func(now int) {
			if now == 2 {
				if err := store.DeleteJob(t.Context(), gone, false); err != nil {
					t.Error(err)
				}
			}
		})
		if body, err := r.get(t, path); err == nil {
			t.Errorf("%s: %d bytes look whole, without a run that was removed", path, len(body))
		}
		r.run(t, r.other, fmt.Sprintf(`{"n":5,"text":"%s"}`, long))
		gone = r.jobs[len(r.jobs)-1]
	}
}

// A profile is never computed from only some of a run's rows.
func TestProfileOfRowsThatGo(t *testing.T) {
	store := &scanned{Store: apitest.NewStore(t)}
	r := startOn(t, store)
	r.run(t, r.other, `{"n":1}`)
	gone := r.jobs[len(r.jobs)-1]
	store.counted = func() {
		store.counted = nil
		if err := store.DeleteJob(t.Context(), gone, false); err != nil {
			t.Error(err)
		}
	}
	r.Run(t, apitest.Scenario{Name: "profile", As: apitest.Reader,
		Do: "GET /api/scraper/data/profile?jobId=" + gone.String(), Status: 503, Code: "unavailable"})
}

// An export counts as an open stream of the customer until it is sent, which bounds what slow
// readers hold.
func TestOpenExportsAreBounded(t *testing.T) {
	store := &scanned{Store: apitest.NewStore(t), held: make(chan struct{}),
		began: make(chan struct{}, 100)}
	r := startOn(t, store, apitest.WithRateLimits)
	path := "/api/scraper/data/export?format=jsonl&jobId=" + r.jobs[0].String()
	var open sync.WaitGroup
	for range limits.MaxStreams {
		open.Go(func() {
			if _, err := r.get(t, path); err != nil {
				t.Error(err)
			}
		})
		<-store.began
	}
	r.Run(t, apitest.Scenario{Name: "one more", As: apitest.Reader, Do: "GET " + path, Status: 429,
		Code: "too_many_streams"})
	close(store.held)
	open.Wait()
}
