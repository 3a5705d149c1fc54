package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// TestRetries: a limited call waits as long as told, an unavailable one for half a minute in all. A
// call with an unknown result is repeated where that is harmless.
func TestRetries(t *testing.T) {
	answer := func(status int, retry time.Duration) error {
		return &Problem{Status: status, retryAfter: retry}
	}
	underway := &Problem{Status: 409, Code: "idempotency_in_flight"}
	broken, unsent := fmt.Errorf("x: %w", ErrUnreachable), fmt.Errorf("x: %w", errUnsent)
	for name, c := range map[string]struct {
		err    error
		unsure bool
		waits  int
		lasted time.Duration
		wait   time.Duration
		again  bool
	}{
		"limited": {answer(429, time.Minute), false, 3, time.Hour, time.Minute, true},
		"limited for long": {answer(429, 3*time.Minute), true, 0, 0, 3 * time.Minute,
			false},
		"limited for ever": {answer(429, time.Second), true, maxWaits, 0, 0, false},
		"unavailable":      {answer(503, 0), false, 5, 20 * time.Second, time.Second, true},
		"unavailable for half a minute": {answer(503, 5*time.Second), true, 0, 30 * time.Second,
			5 * time.Second, false},
		"unavailable for longer than it": {answer(503, time.Minute), true, 0, 0, time.Minute,
			false},
		"another problem":      {answer(500, 0), true, 0, 0, 0, false},
		"no problem":           {errors.New("x"), true, 0, 0, 0, false},
		"broken":               {broken, true, 0, 0, time.Second, true},
		"broken half a minute": {broken, true, 0, 29 * time.Second, time.Second, false},
		"broken, and no key":   {broken, false, 0, 0, time.Second, false},
		"away":                 {unsent, true, 0, 0, 0, false},
		"away since it broke":  {unsent, true, 1, time.Second, time.Second, true},
		"no gateway":           {answer(502, 0), true, 0, 0, time.Second, true},
		"a slow gateway":       {answer(504, 0), true, 0, 0, time.Second, true},
		"a page that is away": {&Problem{Status: 502, Code: "source_unreachable"}, true, 0, 0, 0,
			false},
		"no gateway, and no key": {answer(502, 0), false, 0, 0, time.Second, false},
		"under way":              {underway, true, 3, time.Hour, 8 * time.Second, true},
		"under way for ever":     {underway, true, maxWaits, 0, 0, false},
		"another conflict":       {answer(409, 0), true, 0, 0, 0, false},
	} {
		wait, again := retryAfter(c.err, c.unsure, c.waits, c.lasted)
		if wait != c.wait || again != c.again {
			t.Errorf("%s: again %v after %v, want %v after %v", name, again, wait, c.again, c.wait)
		}
	}
}

// played is a transport that plays answers: one status each, 0 for a connection that breaks.
type played struct {
	statuses []int
	keys     []string
}

func (p *played) RoundTrip(r *http.Request) (*http.Response, error) {
	status := p.statuses[min(len(p.keys), len(p.statuses)-1)]
	p.keys = append(p.keys, r.Header.Get("Idempotency-Key"))
	if status == 0 {
		status = http.StatusOK
		answer := &http.Response{StatusCode: status, Request: r,
			Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"id":`), breaks{}))}
		return answer, nil
	}
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(status)
	if status == http.StatusConflict {
		_, _ = recorder.WriteString(`{"code":"idempotency_in_flight"}`)
	} else {
		_, _ = recorder.WriteString(`{}`)
	}
	answer := recorder.Result()
	answer.Request = r
	return answer, nil
}

type breaks struct{}

func (breaks) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestUnsureCalls: a call whose answer was lost is repeated under its key. Without a key it is not.
// If the client gives up, it says that the call may have been carried out.
func TestUnsureCalls(t *testing.T) {
	const said = "may have been done"
	for name, c := range map[string]struct {
		call     func(*Client) error
		statuses []int
		tries    int
		said     string
	}{
		"a key":                     {put, []int{0, 502, 504, 409, 409, 200}, 6, ""},
		"a key, for ever":           {put, []int{0}, maxWaits + 1, said},
		"a key, under way for ever": {put, []int{409}, maxWaits + 1, said},
		"a reading":                 {read, []int{0, 502, 200}, 3, ""},
		"a reading, for ever":       {read, []int{502}, maxWaits + 1, "502"},
		"no key":                    {link, []int{0}, 1, said},
		"no key, no gateway":        {drain, []int{504}, 1, said},
		"no key, unavailable":       {drain, []int{503, 200}, 2, ""},
		"what a reading costs":      {sample, []int{0}, 1, "broke off"},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := &played{statuses: c.statuses}
			client := New("http://a.example", "", clock.System{}, nil)
			client.http.Transport = transport
			err := c.call(client)
			if (err == nil) != (c.said == "") ||
				err != nil && !strings.Contains(err.Error(), c.said) {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil && c.said != said && strings.Contains(err.Error(), said) {
				t.Errorf("%s: %v", name, err)
			}
			if len(transport.keys) != c.tries || len(slices.Compact(transport.keys)) != 1 {
				t.Errorf("%s: asked with the keys %q", name, transport.keys)
			}
		})
	}
}

func put(c *Client) error    { return last(c.PutGroup(context.Background(), Group{})) }
func read(c *Client) error   { return last(c.Wallet(context.Background())) }
func link(c *Client) error   { return last(c.MakePasswordLink(context.Background(), "a")) }
func drain(c *Client) error  { return c.Drain(context.Background(), "f1", true) }
func sample(c *Client) error { return last(c.Sample(context.Background(), "a")) }

// TestNobodyThere: a call that reaches no server is not repeated.
func TestNobodyThere(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	client := New(gone.URL, "", clock.System{}, func(text string) { t.Error(text) })
	err := put(client)
	if !errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), "may have been done") {
		t.Error(err)
	}
}

// TestKeysAreThoseThatTheServerKeeps: a call sends an Idempotency-Key where the published
// description has one. If the server ignored a key, a repeat would do the call twice.
func TestKeysAreThoseThatTheServerKeeps(t *testing.T) {
	text, err := os.ReadFile("../../../../apiserver/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
		}
	}
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	transport := &asked{}
	c := New("http://a.example", "", clock.System{}, nil)
	c.http.Transport = transport
	c.Impatient()
	ctx := t.Context()
	list := func() io.Reader { return strings.NewReader("") }
	for route, call := range map[string]func() error{
		"PUT /api/scraper/group": func() error { return put(c) },
		"POST /api/scraper/url-list-run": func() error {
			return last(c.RunList(ctx, nil, list, 0, "text/uri-list"))
		},
		"POST /api/admin/customers/{ref}/wallet/adjustments": func() error {
			return last(c.AdjustWallet(ctx, "a", 1, ""))
		},
		"PUT /api/admin/nodes/{name}/drain":    func() error { return c.Drain(ctx, "a", true) },
		"DELETE /api/admin/nodes/{name}/drain": func() error { return c.Drain(ctx, "a", false) },
		"DELETE /api/admin/nodes/{name}":       func() error { return c.RemoveNode(ctx, "a") },
		"POST /api/admin/billing/reconcile":    func() error { return last(c.Reconcile(ctx, 1)) },
		"POST /api/admin/billing/recount":      func() error { return last(c.Recount(ctx)) },
		"POST /api/admin/restore": func() error {
			return last(c.Restore(ctx, list(), 0, false, false))
		},
		"POST /api/admin/backups/{name}/restore": func() error {
			return last(c.RestoreKept(ctx, "a", false, false))
		},
		"PUT /api/scraper":         func() error { return last(c.PutScraper(ctx, Scraper{})) },
		"DELETE /api/scraper/{id}": func() error { return c.DeleteScraper(ctx, "a", "t") },
		"POST /api/scraper/{id}/preview-delete": func() error {
			return last(c.PreviewDeleteScraper(ctx, "a"))
		},
		"POST /api/scraper/{id}/run":  func() error { return last(c.RunScraper(ctx, "a", nil)) },
		"POST /api/scraper/{id}/stop": func() error { return c.StopScraper(ctx, "a") },
		"POST /api/scraper/{id}/estimate": func() error {
			return last(c.Estimate(ctx, "a", 1))
		},
		"POST /api/scraper/{id}/re-extract": func() error {
			return last(c.ReExtract(ctx, "a", ReExtract{}))
		},
		"POST /api/scraper-simple/url-based": func() error {
			return last(c.Detect(ctx, Look{}))
		},
		"POST /api/scraper-simple/preview-from-url": func() error {
			return last(c.Find(ctx, "a", nil))
		},
		"POST /api/scraper/group/{id}/run":  func() error { return last(c.RunGroup(ctx, "a", nil)) },
		"POST /api/scraper/group/{id}/stop": func() error { return last(c.StopGroup(ctx, "a")) },
		"PUT /api/scraper/group/{id}/start-type/{startType}": func() error {
			return last(c.PutStartType(ctx, "a", "DAILY"))
		},
		"POST /api/admin/jobs/{id}/requeue": func() error { return last(c.Requeue(ctx, "a", nil)) },
		"POST /api/admin/accounts": func() error {
			return c.CreateAccount(ctx, NewAccount{})
		},
		"DELETE /api/admin/accounts/{id}": func() error { return c.RemoveAccount(ctx, "a") },
		"PUT /api/admin/accounts/{id}/disable": func() error {
			return c.DisableAccount(ctx, "a", true)
		},
		"DELETE /api/admin/accounts/{id}/disable": func() error {
			return c.DisableAccount(ctx, "a", false)
		},
		"POST /api/admin/accounts/{id}/password-link": func() error {
			return last(c.MakePasswordLink(ctx, "a"))
		},
		"PUT /api/admin/accounts/{id}/password": func() error { return c.SetPassword(ctx, "a", "b") },
	} {
		if err := call(); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", route, err)
		}
		method, path, _ := strings.Cut(route, " ")
		operation, known := described.Paths[path][strings.ToLower(method)]
		if !known || transport.request.Method != method {
			t.Errorf("%s is not described, or called as %s", route, transport.request.Method)
		}
		keeps := false
		for _, p := range operation.Parameters {
			keeps = keeps || p.Name == "Idempotency-Key"
		}
		if sent := transport.request.Header.Get("Idempotency-Key") != ""; sent != keeps {
			t.Errorf("%s: a key is sent %v, kept %v", route, sent, keeps)
		}
	}
}
