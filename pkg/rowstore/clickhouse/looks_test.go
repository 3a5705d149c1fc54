package clickhouse_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// looks is a proxy before the server that sees the queries of scans and the size of answers.
type looks struct {
	asked   atomic.Int64
	longest atomic.Int64 // bytes of an answer
}

// openLooks opens a store behind a new looks.
func openLooks(t *testing.T) (*clickhouse.Store, *looks) {
	address, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	target := &url.URL{Scheme: address.Scheme, Host: address.Host}
	seen := &looks{}
	transport := &http.Transport{DisableCompression: true}
	pass := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, err := io.ReadAll(io.LimitReader(r.Body, 256))
		if err != nil {
			t.Error(err)
		}
		if bytes.HasPrefix(begin, []byte("SELECT doc, _block_number, pos")) {
			seen.asked.Add(1)
			w = &answer{ResponseWriter: w, longest: &seen.longest}
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(begin), r.Body), r.Body}
		pass.ServeHTTP(w, r)
	}))
	address.Host = proxy.Listener.Addr().String()
	store := open(t, clickhouse.Config{URL: address.String(), Database: database(t)})
	t.Cleanup(func() {
		_ = store.Close()
		proxy.Close()
		transport.CloseIdleConnections()
	})
	return store, seen
}

// answer counts the bytes of an answer.
type answer struct {
	http.ResponseWriter
	bytes   int64
	longest *atomic.Int64
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	a.bytes += int64(len(p))
	for longest := a.longest.Load(); a.bytes > longest; longest = a.longest.Load() {
		if a.longest.CompareAndSwap(longest, a.bytes) {
			break
		}
	}
	return a.ResponseWriter.Write(p)
}

// putDocs stores rows as a run's pages, onPage rows per page and pages per batch.
func putDocs(t *testing.T, store *clickhouse.Store, docs [][]byte, onPage,
	pages int) rowstore.Scope {
	t.Helper()
	source := &ids.Sequence{}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(), Started: 1}
	var batch []rowstore.PageWrite
	for seq := 0; len(docs) > 0; seq++ {
		n := min(onPage, len(docs))
		batch = append(batch, rowstore.PageWrite{Job: job, Page: &model.Page{Job: job.ID,
			Unit: model.Unit{Seq: uint32(seq)}, Fetch: source.New(), Outcome: model.Delivered,
			Status: 200, URL: fmt.Sprintf("https://a.test/%d", seq), PriceRow: "tier:plain",
			Quantity: 1, At: int64(seq), Last: true, Rows: docs[:n]}})
		if docs = docs[n:]; len(batch) < pages && len(docs) > 0 {
			continue
		}
		if _, err := store.PutPages(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		batch = nil
	}
	return rowstore.Scope{Group: job.Group}
}

// scanDocs requires a scan by pages of 1,000 rows and 1 MiB to return exactly docs, the documents
// that pass a filter.
func scanDocs(t *testing.T, store *clickhouse.Store, scope rowstore.Scope, docs [][]byte,
	f filter.Node) {
	t.Helper()
	upto, err := store.Horizon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q := rowstore.ScanQuery{Scope: scope, Filter: f, Upto: upto, Limit: 1_000, Bytes: 1 << 20}
	for at := 0; q.After < upto; {
		page, last, err := store.Scan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for i, doc := range page {
			if q.Full(i, size) {
				t.Fatalf("a page of %d rows, of which %d are enough", len(page), i)
			}
			if at == len(docs) || !bytes.Equal(doc, docs[at]) {
				t.Fatalf("row %d is not the one that was stored", at)
			}
			at, size = at+1, size+len(doc)
		}
		if q.After = last; last == upto && at != len(docs) {
			t.Fatalf("%d rows of %d", at, len(docs))
		}
		if last < upto && !q.Full(len(page), size) {
			t.Fatalf("a page of %d rows and %d bytes before the end", len(page), size)
		}
	}
}

// TestScanOfShortRows: each page of short rows takes one look, and a few more where blocks end.
func TestScanOfShortRows(t *testing.T) {
	store, seen := openLooks(t)
	docs := make([][]byte, 100_000)
	for i := range docs {
		docs[i] = fmt.Appendf(nil, `{"n":%d,"text":"some words of a row that is not long"}`, i)
	}
	scope := putDocs(t, store, docs, 50, 500)
	scanDocs(t, store, scope, docs, nil)
	if asked := seen.asked.Load(); asked > 130 {
		t.Errorf("%d looks at 100 pages", asked)
	}
}

// TestScanOfFilteredRows: if a filter leaves many rows, a page takes hardly more than one look. If
// it leaves few, a look brings 128 of them.
func TestScanOfFilteredRows(t *testing.T) {
	store, seen := openLooks(t)
	docs := make([][]byte, 100_000)
	for i := range docs {
		docs[i] = fmt.Appendf(nil, `{"n":%d,"text":"some words of a row that is not long"}`, i%40)
	}
	scope := putDocs(t, store, docs, 1, 20_000)
	for _, c := range []struct {
		below int // of 40
		asked int64
	}{{36, 130}, {20, 80}, {1, 40}} {
		f, err := filter.Parse(fmt.Appendf(nil, `{"n":{"lt":%d}}`, c.below))
		if err != nil {
			t.Fatal(err)
		}
		var some [][]byte
		for i := range docs {
			if i%40 < c.below {
				some = append(some, docs[i])
			}
		}
		seen.asked.Store(0)
		scanDocs(t, store, scope, some, f)
		if asked := seen.asked.Load(); asked > c.asked {
			t.Errorf("%d looks at %d rows by pages of 1,000", asked, len(some))
		}
	}
}

// TestScanBoundsBytes: no look brings much more than 64 MiB of documents, however their lengths
// differ, and rows come in order.
func TestScanBoundsBytes(t *testing.T) {
	store, seen := openLooks(t)
	random := rand.New(rand.NewPCG(18, 18))
	var docs [][]byte
	add := func(count int, length func() int) {
		for range count {
			raw := make([]byte, length()*3/4)
			for i := range raw {
				raw[i] = byte(random.Uint32())
			}
			docs = append(docs, fmt.Appendf(nil, `{"n":%d,"text":%q}`, len(docs),
				base64.StdEncoding.EncodeToString(raw)))
		}
	}
	add(1_500, func() int { return 100 })
	add(12, func() int { return 10_000_000 }) // where a look of 1,000 rows is expected
	add(60, func() int { return int(100 * math.Pow(1e5, random.Float64())) })
	add(200, func() int { return 100 })
	scope := putDocs(t, store, docs, 1, 2_000)
	scanDocs(t, store, scope, docs, nil)
	all := filter.Compare{Field: "n", Op: filter.Exists, Values: []filter.Value{{Kind: filter.Bool,
		Bool: true}}}
	scanDocs(t, store, scope, docs, all)
	if most := seen.longest.Load(); most < 10_000_000 || most > 80_000_000 {
		t.Errorf("the longest look has %d bytes", most)
	}
}
