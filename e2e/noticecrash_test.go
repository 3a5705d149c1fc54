package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/skew"
)

// How long notices are collected before they are mailed, and how long until the next mail.
const gathered, mailedAgain = 2 * time.Minute, 2 * time.Hour

// ear receives a customer's notices. It outlives the product.
type ear struct {
	hook  struct{ ID string }
	calls chan string // webhook calls, by id
	mails mailbox
	heard map[string]int    // by way and id
	said  map[string]string // subjects of e-mails
	flags []string          // flags for its mail server
}

// newEarCase is a stopped product, whose customer is notified of new keys both ways.
func newEarCase(t *testing.T) (*crashCase, *late, *ear) {
	t.Helper()
	e := &ear{calls: make(chan string, 64), heard: map[string]int{}, said: map[string]string{}}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e.calls <- r.Header.Get("webhook-id")
	}))
	t.Cleanup(hook.Close)
	var server string
	e.mails, server = openMailbox(t)
	e.flags = []string{"--smtp", server, "--smtp-tls", "none", "--smtp-from", "shoal@shoal.test"}
	args := append(suite.Fast(), "--no-rate-limits")
	c := &crashCase{service: &service{single: newSingle(t, args)}}
	c.args = append(c.args, e.flags...)
	clock := &late{single: c.single, clock: filepath.Join(t.TempDir(), "clock")}
	c.Service = &suite.Service{T: t, Product: clock, Args: args}
	c.env = []string{skew.File + "=" + clock.clock}
	c.bring()
	err := c.SignIn().Call(t.Context(), "POST", "/api/customer", nil, map[string]any{
		"firstname": "Ann", "lastname": "Smith", "email": "ann@shop.test",
		"agreeWithTerms": true}, nil)
	if err == nil {
		err = c.Again(suite.NewKey()).Call(t.Context(), "POST", "/api/webhooks", nil,
			map[string]any{"url": hook.URL, "events": []model.Event{model.APIKeyCreated}},
			&e.hook)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Down(t)
	return c, clock, e
}

// mint makes a key, which notifies the customer.
func (c *crashCase) mint() {
	c.T.Helper()
	c.survive("mint", func(ctx context.Context) error {
		return c.Call(ctx, "PUT", "/api/key/generate", url.Values{"name": {"key"},
			"scope": {"USER"}}, nil, nil)
	})
}

// notices returns the ids of all the customer's notices, newest first.
func (c *crashCase) notices() (ids []string) {
	c.T.Helper()
	var page struct{ Content []struct{ ID string } }
	c.survive("notices", func(ctx context.Context) error {
		return c.Call(ctx, "GET", "/api/notifications", nil, nil, &page)
	})
	for _, notice := range page.Content {
		ids = append(ids, notice.ID)
	}
	return ids
}

// hears waits until the wanted notices have arrived, and that many processes have died.
func (c *crashCase) hears(e *ear, deaths int, wanted ...string) {
	c.T.Helper()
	ctx := suite.Within(c.T, suite.Patience)
	for {
		missing := ""
		for _, one := range wanted {
			if e.heard[one] == 0 {
				missing = one
			}
		}
		if missing == "" && len(c.Deaths) >= deaths {
			return
		}
		select {
		case id := <-e.calls:
			e.heard["call "+id]++
		case text := <-e.mails:
			e.take(c.T, text)
		case <-c.p.Ended():
			if !c.buried() {
				c.T.Fatal("the process survives its end")
			}
			c.bring()
		case <-ctx.Done():
			c.T.Fatalf("after %d deaths %q is missing in %v", len(c.Deaths), missing, e.heard)
		}
	}
}

// notes waits until all calls are recorded: a call in progress when a process stops is repeated.
func (c *crashCase) notes(e *ear) {
	c.T.Helper()
	for ctx := suite.Within(c.T, suite.Patience); ; {
		var page struct{ Content []struct{ State string } }
		if err := c.Call(ctx, "GET", "/api/webhooks/"+e.hook.ID+"/deliveries", nil, nil,
			&page); err != nil {
			c.T.Fatal(err)
		}
		noted := 0
		for _, delivery := range page.Content {
			if delivery.State == "DELIVERED" {
				noted++
			}
		}
		if noted == len(page.Content) {
			return
		}
		select {
		case <-ctx.Done():
			c.T.Fatalf("of %d calls %d are noted", len(page.Content), noted)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (e *ear) take(t *testing.T, text string) {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(message.Header.Get("Message-Id"), "<"), "@")
	e.heard["mail "+id]++
	e.said[id] = message.Header.Get("Subject")
}

// TestCrashesOfNotices kills the process around the calls of a webhook, and around an e-mail, also
// before they are recorded. Nothing is lost. A notice in progress comes at most twice, under the
// same id, and later ones come once.
func TestCrashesOfNotices(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"before_step", "after_send", "after_step"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			tellDespiteKills(t, point)
		})
	}
}

func tellDespiteKills(t *testing.T, point string) {
	t.Helper()
	c, clock, e := newEarCase(t)
	mailing := c.args
	c.args = c.args[:len(c.args)-len(e.flags)] // mails only collect from now on
	c.bring(crash.At + "=work.webhooks." + point)
	for range 3 {
		c.mint()
	}
	first := c.notices()
	first = first[:len(first)-1] // the product's first key was notified nowhere
	var calls []string
	for _, id := range first {
		calls = append(calls, "call "+id)
	}
	c.hears(e, 1, calls...)
	c.notes(e)
	c.Down(t)

	clock.pass(t, gathered)
	c.args = mailing
	c.bring(crash.At + "=work.email." + point)
	oldest := first[len(first)-1]
	c.hears(e, 2, "mail "+oldest)
	if said := e.said[oldest]; !strings.HasSuffix(said, fmt.Sprintf("and %d more", len(first)-1)) {
		t.Errorf("of %d keys the e-mail says %q", len(first), said)
	}

	// Repeated notices come before new ones.
	c.mint()
	next := c.notices()[0]
	c.hears(e, 2, "call "+next)
	c.notes(e)
	c.Down(t)
	clock.pass(t, mailedAgain)
	c.bring()
	c.hears(e, 2, "mail "+next)
	for what, times := range e.heard {
		if times > 2 || times > 1 && strings.HasSuffix(what, next) {
			t.Errorf("%s came %d times", what, times)
		}
	}
	if want := len(first) + 3; len(e.heard) != want {
		t.Errorf("%d ids were heard of, want %d: %v", len(e.heard), want, e.heard)
	}
	t.Logf("%d notices: %v", len(first)+1, e.heard)
}
