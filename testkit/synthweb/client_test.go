package synthweb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// start serves a web until the test ends.
func start(t testing.TB, config synthweb.Config) *synthweb.Web {
	t.Helper()
	web, err := synthweb.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	})
	return web
}

// client is a plain net/http client of a web that counts its requests.
type client struct {
	http      *http.Client
	transport *http.Transport

	mu    sync.Mutex
	asked map[string]int // by address
}

func newClient(t testing.TB, web *synthweb.Web) *client {
	c := &client{asked: make(map[string]int)}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "tcp", web.Addr())
		},
		DisableCompression: true,
	}
	c.http, c.transport = &http.Client{Transport: counting{c, transport}}, transport
	t.Cleanup(transport.CloseIdleConnections)
	return c
}

type counting struct {
	client *client
	next   http.RoundTripper
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.client.mu.Lock()
	c.client.asked[r.URL.String()]++
	c.client.mu.Unlock()
	return c.next.RoundTrip(r)
}

// fetched is one answer, read whole.
type fetched struct {
	status int
	header http.Header
	body   []byte
	final  string
}

// get gives up when an answer takes longer than patience once it has begun.
func (c *client) get(ctx context.Context, address string, patience time.Duration) (fetched,
	error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fetched{}, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fetched{}, err
	}
	defer response.Body.Close()
	timer := time.AfterFunc(patience, func() { giveUp(context.DeadlineExceeded) })
	defer timer.Stop()
	body, err := io.ReadAll(response.Body)
	return fetched{response.StatusCode, response.Header, body, response.Request.URL.String()}, err
}

// enough is the patience with answers that do not stall.
const enough = 30 * time.Second

// mustGet is get for requests that must succeed.
func (c *client) mustGet(t testing.TB, address string) fetched {
	t.Helper()
	page, err := c.get(t.Context(), address, enough)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// found is what the client makes of a page, in terms of a Truth.
type found struct {
	Outcome model.Outcome
	Rows    []synthweb.Row
	Final   string
	Code    fault.Code
	Status  int
	next    string
}

// crawl fetches a page like a scraper: robots.txt first, up to three attempts, then the rows with
// the fields.
func (c *client) crawl(t *testing.T, address string, fields []model.Field,
	patience time.Duration) found {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	robots := c.mustGet(t, "http://"+u.Host+"/robots.txt")
	for line := range strings.Lines(string(robots.body)) {
		prefix, ok := strings.CutPrefix(strings.TrimSpace(line), "Disallow: ")
		if ok && strings.HasPrefix(u.Path, prefix) {
			return found{Outcome: model.Errored, Code: fault.PageRobots}
		}
	}
	var page fetched
	for range 3 {
		// net/http itself repeats a request when a reused connection breaks.
		c.transport.CloseIdleConnections()
		page, err = c.get(t.Context(), address, patience)
		if err == nil && page.status < 500 {
			break
		}
	}
	switch {
	case err != nil:
		return found{Outcome: model.Errored, Code: codeOf(t, err)}
	case page.status != http.StatusOK:
		return found{Outcome: model.Errored, Code: fault.PageStatus, Status: page.status}
	case !strings.HasPrefix(page.header.Get("Content-Type"), "text/html"):
		return found{Outcome: model.Errored, Code: fault.PageNotHTML}
	}
	rows, next := extract(t, page.body, fields)
	if len(rows) == 0 {
		return found{Outcome: model.Errored, Code: fault.PageNoRows}
	}
	if next != "" {
		next = resolve(t, page.final, next)
	}
	return found{Outcome: model.Delivered, Rows: rows, Final: page.final, next: next}
}

func codeOf(t *testing.T, err error) fault.Code {
	t.Helper()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fault.PageTimeout
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault.PageProtocol
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return fault.PageConnect
	case strings.Contains(err.Error(), "stopped after 10 redirects"):
		return fault.PageRedirects
	}
	t.Fatalf("an error that no class of page should cause: %v", err)
	return ""
}

func resolve(t *testing.T, base, reference string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := u.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	return resolved.String()
}

// extract reads a row from each item, or from the whole page if it has none, and the link to the
// next page.
func extract(t *testing.T, body []byte, fields []model.Field) (rows []synthweb.Row, next string) {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	scopes := doc.Find(".item")
	if scopes.Length() == 0 {
		scopes = doc.Selection
	}
	scopes.Each(func(_ int, scope *goquery.Selection) {
		row, some := synthweb.Row{}, false
		for _, field := range fields {
			match := scope.Find(field.Selector).First()
			switch {
			case field.Kind == model.Exists:
				row[field.Name] = match.Length() > 0
				continue
			case match.Length() == 0:
				row[field.Name] = nil
				continue
			case field.Kind == model.Attr:
				row[field.Name] = match.AttrOr(field.Attr, "")
			default:
				row[field.Name] = strings.TrimSpace(match.Text())
			}
			some = true
		}
		if some && row["title"] != nil {
			rows = append(rows, row)
		}
	})
	return rows, doc.Find(synthweb.NextSelector).AttrOr("href", "")
}

// every is a web with at least one page of every class.
func every() synthweb.Config {
	mix := synthweb.Mix{}
	for class := synthweb.Product; class <= synthweb.LinkedData; class++ {
		mix = append(mix, synthweb.Share{Class: class, Weight: 1})
	}
	return synthweb.Config{
		Seed: 7, Hosts: 8, PagesPerHost: 40, Mix: mix, PageBytes: []int{4_000, 10_000},
		ChainPages: 4, ItemsPerPage: 5,
		Fails: 2, DripTime: 50 * time.Millisecond,
		Robots: []synthweb.Robots{synthweb.RobotsAbsent, synthweb.RobotsEmpty,
			synthweb.RobotsDisallow, synthweb.RobotsDelay},
	}
}

// withTemplate is a web that shows one small template everywhere.
func withTemplate() synthweb.Config {
	return synthweb.Config{
		Hosts: 3, PagesPerHost: 4,
		Template: []byte(`<h1 class="title">Product name 12345</h1><p>12345</p><div class="sku">SKU-00012345</div>`),
		TemplateRow: synthweb.Row{"title": "Product name 12345", "sku": "SKU-00012345",
			"offer": false},
	}
}

func describe(p synthweb.Page) string {
	return fmt.Sprintf("%s (outcome %d)", p.URL, p.Outcome)
}
