package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// receiver takes calls and answers them with its handler.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	heads  []http.Header
	bodies []string
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.heads, r.bodies = append(r.heads, q.Header.Clone()), append(r.bodies, string(body))
		r.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) calls() ([]http.Header, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]http.Header(nil), r.heads...), append([]string(nil), r.bodies...)
}

func takes(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// desk is a control plane with a caller of webhooks.
type desk struct {
	*testing.T
	client *clienttest.Client
	clock  *clock.Manual
	ids    ids.Sequence
	egress *egress.Client
	kill   func() // called after calls, before they are recorded
	// outcome is the result of the last step.
	outcome work.Outcome
}

func newDesk(t *testing.T, allow ...netip.Prefix) *desk {
	t.Helper()
	d := &desk{T: t, clock: clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		kill: func() {}}
	d.client = clienttest.New(t, d.clock)
	d.customer("ann")
	var err error
	if d.egress, err = egress.New(egress.Config{Allow: allow}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.egress.Close)
	return d
}

func loopback() netip.Prefix { return netip.MustParsePrefix("127.0.0.0/8") }

func (d *desk) customer(ref string) {
	d.client.Must(d, client.OpenCustomer{Customer: ref, Entry: d.ids.New()})
}

func (d *desk) hook(customer, url string) ids.ID {
	id := d.ids.New()
	d.client.Must(d, client.PutWebhook{ID: id, Customer: customer, URL: url, Secret: []byte("one"),
		Events: []model.Event{model.APIKeyCreated}})
	return id
}

func (d *desk) happens(customer string) {
	id := d.ids.New()
	d.client.Must(d, client.MintKey{ID: id, Customer: customer, Prefix: id.String()[17:],
		Name: "a key", Scope: model.ScopeUser})
}

var errKilled = errors.New("killed")

// step takes one step, or dies in it.
func (d *desk) step() (err error) {
	d.Helper()
	defer func() {
		if r := recover(); r != nil {
			err = errKilled
		}
	}()
	d.outcome, err = d.kind().Step(context.Background(), work.Item{})
	return err
}

// kind is the work of a process that has just begun.
func (d *desk) kind() work.Kind {
	return Kind(Config{Sender: d.egress, Client: d.client, Clock: d.clock,
		Logger: slog.New(slog.DiscardHandler), Metrics: telemetry.NewMetrics(),
		Point: func(string) { d.kill() }})
}

func (d *desk) must() {
	d.Helper()
	if err := d.step(); err != nil {
		d.Fatal(err)
	}
}

// newest is the newest delivery of a webhook.
func (d *desk) newest(hook ids.ID) (newest *client.Delivery) {
	d.client.View().Deliveries(hook, func(found *client.Delivery) bool {
		newest = found
		return false
	})
	return newest
}

func TestCall(t *testing.T) {
	d, r := newDesk(t, loopback()), newReceiver(t, takes)
	hook := d.hook("ann", r.URL+"/hook")
	d.happens("ann")
	d.client.Must(t, client.RotateWebhook{ID: hook, Customer: "ann", Secret: []byte("two"),
		Overlap: 1000})
	d.must()
	d.must()
	heads, bodies := r.calls()
	if len(heads) != 1 {
		t.Fatalf("%d calls", len(heads))
	}
	made, at := d.newest(hook), d.clock.Now().Unix()
	id := made.Notice.ID.String()
	for header, want := range map[string]string{"Webhook-Id": id,
		"Webhook-Timestamp": strconv.FormatInt(at, 10), "Content-Type": "application/json",
		"Webhook-Signature": sign(id, at, []byte(bodies[0]), []byte("two"), []byte("one"))} {
		if got := heads[0].Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	var got struct {
		Type, Timestamp string
		Data            struct {
			ID, Title string
			Key       struct{ ID, Name string }
		}
	}
	if err := json.Unmarshal([]byte(bodies[0]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "API_KEY_CREATED" || got.Timestamp != "2026-01-02T03:04:05.000Z" ||
		got.Data.ID != id || got.Data.Key.Name != "a key" ||
		got.Data.Key.ID != made.Notice.Subject.String() {
		t.Errorf("%s", bodies[0])
	}
	if made.State != "DELIVERED" || made.Status != 204 || made.Tries != 1 {
		t.Errorf("%+v", made)
	}
	d.clock.Advance(time.Second) // the former secret has expired
	d.happens("ann")
	d.must()
	if heads, _ := r.calls(); strings.Contains(heads[1].Get("Webhook-Signature"), " ") {
		t.Error("the former secret still signs")
	}
}

// TestEveryEventHasAMessage: for each event, the body describes its subject.
func TestEveryEventHasAMessage(t *testing.T) {
	for event, member := range map[model.Event]string{model.RunFailed: "run",
		model.RunCompleted: "run", model.RunStoppedBalance: "run", model.APIKeyCreated: "key",
		model.WalletLowBalance: "balanceMicros", model.TopUpApplied: "topUp",
		model.TopUpFailed: "topUp", model.WebhookDisabled: "webhook", model.RunChanged: "changes",
		model.WebhookTest: "webhook"} {
		body, err := newMessage(&client.Notice{Event: event})
		var got struct{ Data map[string]any }
		if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil ||
			got.Data[member] == nil || len(got.Data) != 4 {
			t.Errorf("%s: %s, %v", event, body, err)
		}
	}
}

// TestMessageOfChanges has what changed, or why that is unknown, and never parts of both.
func TestMessageOfChanges(t *testing.T) {
	n := client.Notice{Event: model.RunChanged, Subject: ids.ID{1}, Scraper: ids.ID{2},
		Name: "Shop", Changes: &client.RunChanges{From: ids.ID{3}, Added: 4, Changed: 5,
			Examples: []string{`added sku "<b>"`}}}
	failed := n
	failed.Changes, failed.Message = nil, "its rows are gone"
	who := fmt.Sprintf(`{"jobId":"%s","scraperId":"%s","scraperName":"Shop",`, n.Subject,
		n.Scraper)
	for wanted, n := range map[string]client.Notice{
		who + fmt.Sprintf(`"fromJobId":"%s","added":4,"removed":0,"changed":5,`+
			`"examples":["added sku \"<b>\""],"diff":"/api/scraper/data/diff?from=%[1]s&to=%s"}`,
			n.Changes.From, n.Subject): n,
		who + `"added":0,"removed":0,"changed":0,"errorMessage":"its rows are gone"}`: failed,
	} {
		body, err := newMessage(&n)
		var got struct {
			Data struct{ Changes json.RawMessage }
		}
		if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil {
			t.Fatal(err)
		}
		var have, want any
		if err := errors.Join(json.Unmarshal(got.Data.Changes, &have),
			json.Unmarshal([]byte(wanted), &want)); err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s, %v", got.Data.Changes, err)
		}
	}
}

// TestCallsThatFail: a failed call is tried again later, and says why it failed.
func TestCallsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		url    string
		answer http.HandlerFunc
		status uint16
		why    string
	}{
		"refused": {"", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}, 500, "answered 500"},
		"redirected": {"", func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "/elsewhere", http.StatusFound)
		}, 302, "answered 302"},
		"away":      {"http://127.0.0.1:1/", takes, 0, "connect_failed"},
		"forbidden": {"http://169.254.169.254/", takes, 0, "INVALID_URL"},
		"private":   {"http://10.0.0.1/", takes, 0, "INVALID_URL"},
		"a long answer is fine": {"", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 10*maxAnswer)) // the client may have read enough
		}, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := newDesk(t, loopback()), newReceiver(t, c.answer)
			if c.url == "" {
				c.url = r.URL
			}
			hook := d.hook("ann", c.url)
			d.happens("ann")
			d.must()
			got := d.newest(hook)
			if got.Status != c.status || !strings.Contains(got.Error, c.why) ||
				(got.State == "PENDING") != (c.why != "") || got.Tries != 1 {
				t.Errorf("%+v", got)
			}
			if heads, _ := r.calls(); len(heads) > 1 {
				t.Errorf("%d calls: a redirect was followed", len(heads))
			}
		})
	}
}

// TestTheSlowHoldUpNobody: while a customer's receivers hang, others are called.
func TestTheSlowHoldUpNobody(t *testing.T) {
	d := newDesk(t, loopback())
	hang := make(chan struct{})
	slow := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-hang })
	good := newReceiver(t, takes)
	for range 3 {
		d.hook("ann", slow.URL)
	}
	for range 10 {
		d.happens("ann")
	}
	d.customer("bob")
	hook := d.hook("bob", good.URL)
	const calls = 2 * ofWebhook
	for range calls {
		d.happens("bob")
	}
	ended := make(chan error, 1)
	go func() { ended <- d.step() }()
	for delivered := 0; delivered < calls; {
		select {
		case err := <-ended:
			t.Fatalf("it ended while receivers were silent: %v", err)
		case <-time.After(time.Millisecond):
		}
		delivered = 0
		d.client.View().Deliveries(hook, func(one *client.Delivery) bool {
			if one.State == "DELIVERED" {
				delivered++
			}
			return true
		})
	}
	if heads, _ := slow.calls(); len(heads) > ofCustomer {
		t.Errorf("%d calls of one customer at once", len(heads))
	}
	d.clock.Advance(stepFor) // nothing more begins
	close(hang)
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return
		case <-time.After(time.Millisecond):
			d.clock.Advance(lookEvery)
		}
	}
}

// TestStepsDoNotEndWithTheSlow: towards its end a step begins no calls to failing webhooks, which
// it would have to await. The next step, which follows at once, makes them.
func TestStepsDoNotEndWithTheSlow(t *testing.T) {
	d := newDesk(t, loopback())
	hang := make(chan struct{})
	slow := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		<-hang
		w.WriteHeader(http.StatusInternalServerError)
	})
	hook := d.hook("ann", slow.URL)
	d.happens("ann")
	d.client.Must(t, client.RecordDeliveries{Tried: []client.TriedDelivery{{Webhook: hook,
		Message: d.newest(hook).Notice.ID, Error: "timeout"}}})
	for range 3 {
		d.happens("ann")
	}
	ended := make(chan error, 1)
	go func() { ended <- d.step() }()
	for called := 0; called == 0; {
		heads, _ := slow.calls()
		called = len(heads)
	}
	d.clock.Advance(slowFor)
	close(hang)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if heads, _ := slow.calls(); len(heads) != 1 || d.outcome.End != work.Held {
		t.Errorf("%d calls, and then %v", len(heads), d.outcome.End)
	}
	d.must()
	if heads, _ := slow.calls(); len(heads) != 4 || d.outcome.End != work.Rested {
		t.Errorf("%d calls after the next step, and then %v", len(heads), d.outcome.End)
	}
}

// TestRoom tests the shares of webhooks and customers at their bounds.
func TestRoom(t *testing.T) {
	b := newBatch(&caller{})
	add := func(w *client.Webhook, want int) {
		t.Helper()
		n := 0
		for ; n <= atOnce && b.room(w); n++ {
			c := call{w, b.isSlow(w)}
			b.open[name{w.ID, ids.ID{byte(len(b.open))}}] = c
			b.count(c, 1)
		}
		if n != want {
			t.Errorf("%d calls of %s, want %d", n, w.Customer, want)
		}
	}
	good := func(customer string, n byte) *client.Webhook {
		return &client.Webhook{ID: ids.ID{n}, Customer: customer}
	}
	add(good("ann", 1), ofWebhook)
	add(good("ann", 2), ofWebhook)
	add(good("ann", 3), ofCustomer-2*ofWebhook)
	for n := range byte(slowAtOnce) {
		dead := good(fmt.Sprint("dead ", n), 10+n)
		dead.FailingSince = 1
		add(dead, 1)
	}
	add(&client.Webhook{ID: ids.ID{100}, Customer: "dead", FailingSince: 1}, 0)
	for n := range byte((atOnce - slowAtOnce - ofCustomer) / ofWebhook) {
		add(good(fmt.Sprint("good ", n), 110+n), ofWebhook)
	}
	add(good("late", 200), 0)

	b = newBatch(&caller{})
	for n := range byte(slowOfOne + 1) {
		dead := good("ann", n)
		dead.FailingSince = 1
		add(dead, min(1, slowOfOne-int(n)))
	}
	add(good("ann", 100), ofWebhook) // the rest of its customer's share
}

// TestKilledBetweenCallingAndNoting kills the caller after each answer in turn. Nothing is lost,
// and a repeat has the same id and body.
func TestKilledBetweenCallingAndNoting(t *testing.T) {
	const events = 6
	for at := 1; at <= 3; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			d, r := newDesk(t, loopback()), newReceiver(t, takes)
			hook := d.hook("ann", r.URL)
			for range events {
				d.happens("ann")
			}
			passed := 0
			d.kill = func() {
				if passed++; passed == at {
					panic(errKilled)
				}
			}
			for range events { // answers may come together
				if err := d.step(); err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
			}
			heads, bodies := r.calls()
			said := map[string]string{}
			for i, head := range heads {
				id := head.Get("Webhook-Id")
				if before, known := said[id]; known && before != bodies[i] {
					t.Errorf("%s says %s, and %s before", id, bodies[i], before)
				}
				said[id] = bodies[i]
			}
			if len(said) != events || d.client.View().Webhook(hook).Next != 0 {
				t.Errorf("%d of %d came, in %d calls", len(said), events, len(heads))
			}
		})
	}
}

// TestDownControlPlane: what cannot be recorded is sent again, and nobody waits for ever.
func TestDownControlPlane(t *testing.T) {
	d, r := newDesk(t, loopback()), newReceiver(t, takes)
	hook := d.hook("ann", r.URL)
	d.happens("ann")
	d.kill = func() { d.client.Fail(clienttest.Down()) }
	if err := d.step(); err == nil {
		t.Fatal("noted by a control plane that is away")
	}
	d.client.Fail(nil)
	d.kill = func() {}
	d.must()
	heads, _ := r.calls()
	if len(heads) != 2 || heads[0].Get("Webhook-Id") != heads[1].Get("Webhook-Id") ||
		d.newest(hook).State != "DELIVERED" {
		t.Errorf("%d calls, then %+v", len(heads), d.newest(hook))
	}
}

// Deliveries to a blocked customer wait, and hold up nobody.
func TestBlockedCustomersAreNotCalled(t *testing.T) {
	d, r := newDesk(t, loopback()), newReceiver(t, takes)
	d.customer("bob")
	blocked := d.hook("ann", r.URL+"/ann")
	other := d.hook("bob", r.URL+"/bob")
	d.happens("ann")
	d.client.Must(t, client.BlockCustomer{Customer: "ann", By: "root"})
	d.must()
	if heads, _ := r.calls(); len(heads) != 0 {
		t.Errorf("%d calls", len(heads))
	}
	d.happens("bob")
	d.must()
	if d.newest(other).State != "DELIVERED" || d.newest(blocked).State != "PENDING" {
		t.Errorf("bob's is %+v, ann's %+v", d.newest(other), d.newest(blocked))
	}
	d.client.Must(t, client.UnblockCustomer{Customer: "ann"})
	d.must()
	if got := d.newest(blocked); got.State != "DELIVERED" || got.Tries != 1 {
		t.Errorf("after the block %+v", got)
	}
}
