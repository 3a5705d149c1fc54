// Package webhooks calls customers' webhooks: what a request says, how it is signed (Standard
// Webhooks), and how the calls share capacity. What to send, and when to retry, is replicated
// state. One node sends at a time. A repeat has the same id.
package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// Bounds on calls under way, and on one request.
const (
	atOnce     = 64
	ofCustomer = 8
	ofWebhook  = 4 // 1 while it fails
	slowAtOnce = atOnce / 2
	slowOfOne  = ofCustomer / 2 // of one customer
	timeout    = 15 * time.Second
	quick      = 2 * time.Second // a webhook whose newest call took longer is slow
	maxAnswer  = 16 << 10        // bytes; the rest is not read
	maxError   = 200             // bytes
)

// How long a step takes up calls that come due, and how long to rest afterwards. Calls to slow
// webhooks, which may use all their time, begin only until slowFor, so that the step need not wait.
const (
	stepFor   = 30 * time.Second
	slowFor   = stepFor - timeout
	lookEvery = time.Second
	restFor   = 10 * time.Second
)

// Sender sends one request: the egress client, behind the address guard.
type Sender interface {
	Do(ctx context.Context, req *egress.Request) (*egress.Response, error)
	// CheckURL says, without DNS, whether an address may be called at all.
	CheckURL(url string) error
}

// Config is what a Kind needs. Point is optional.
type Config struct {
	Sender  Sender
	Client  client.Client
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
	// Point is called at "work.webhooks.after_send". Tests end the process there.
	Point func(name string)
}

type caller struct {
	Config
	calls *prometheus.CounterVec
	slow  map[ids.ID]bool // webhooks whose newest call from here was slow
}

// Kind is the kind of background work that calls webhooks.
func Kind(config Config) work.Kind {
	c := &caller{Config: config, slow: map[ids.ID]bool{}, calls: config.Metrics.Counters(
		"shoal_apiserver_webhook_calls_total",
		"Calls of customers' webhooks, by outcome: delivered, refused (the status was not 2xx) "+
			"or unreachable.", "outcome")}
	if c.Point == nil {
		c.Point = func(string) {}
	}
	return work.Kind{Name: work.Webhooks, Recurring: true, Step: c.step}
}

// step calls webhooks until nothing is due, or its time is over.
func (c *caller) step(ctx context.Context, _ work.Item) (work.Outcome, error) {
	if !c.due() {
		return work.Rest(nil, restFor), nil
	}
	// A former owner may have recorded more than this node knows.
	view, err := c.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: look for due deliveries: %w", err)
	}
	maps.DeleteFunc(c.slow, func(id ids.ID, _ bool) bool { return view.Webhook(id) == nil })
	ctx, cancel := context.WithCancel(ctx)
	b := newBatch(c)
	defer b.wait()
	defer cancel()
	for began := c.Clock.Now(); ; {
		lasts := c.Clock.Now().Sub(began)
		b.late = lasts >= slowFor
		if ctx.Err() == nil && lasts < stepFor {
			b.fill(ctx)
		}
		if len(b.open) == 0 {
			if ctx.Err() == nil && c.due() {
				return work.GoOn(nil), nil
			}
			return work.Rest(nil, restFor), ctx.Err()
		}
		if err := c.note(ctx, b.ended(c.Clock.After(lookEvery))); err != nil {
			return work.Outcome{}, err
		}
	}
}

// isSlow says whether calls to a webhook are likely to take long: it fails, or took long just now.
func (c *caller) isSlow(w *client.Webhook) bool { return w.FailingSince != 0 || c.slow[w.ID] }

// took notes how long a call to a webhook took.
func (c *caller) took(id ids.ID, d time.Duration) {
	if delete(c.slow, id); d > quick {
		c.slow[id] = true
	}
}

// due says whether a delivery is due, as far as this node knows. Deliveries to a blocked customer
// wait until it is unblocked.
func (c *caller) due() (due bool) {
	now, view := c.Clock.Now().UnixMilli(), c.Client.View()
	view.WebhooksDue(func(w *client.Webhook) bool {
		due = w.Next <= now && !view.Customer(w.Customer).Blocked()
		return w.Next <= now && !due
	})
	return due
}

// note records the results of calls.
func (c *caller) note(ctx context.Context, tried []client.TriedDelivery) error {
	if len(tried) == 0 {
		return nil
	}
	c.Point("work.webhooks.after_send")
	_, err := client.Do(ctx, c.Client, client.RecordDeliveries{Tried: tried}, nil)
	if err != nil {
		return fmt.Errorf("apiserver: note deliveries: %w", err)
	}
	return nil
}

// call makes one attempt at a delivery. It has no result if ctx has ended.
func (c *caller) call(ctx context.Context, w *client.Webhook,
	d *client.Delivery) (tried client.TriedDelivery, ok bool) {
	tried = client.TriedDelivery{Webhook: w.ID, Message: d.Notice.ID, Tries: d.Tries}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, err := c.exchange(waiting, w, d)
	outcome := "delivered"
	switch {
	case ctx.Err() != nil:
		return tried, false
	case err != nil:
		outcome, tried.Error = "unreachable", reason(err)
	case status < 200 || status > 299:
		outcome, tried.Error = "refused", fmt.Sprintf("The receiver answered %d.", status)
	}
	tried.Status = uint16(status)
	c.calls.WithLabelValues(outcome).Inc()
	return tried, true
}

func (c *caller) exchange(ctx context.Context, w *client.Webhook,
	d *client.Delivery) (status int, err error) {
	if err := c.Sender.CheckURL(w.URL); err != nil { // the rules may have changed
		return 0, err
	}
	body, err := newMessage(&d.Notice)
	if err != nil {
		return 0, err
	}
	now, id := c.Clock.Now(), d.Notice.ID.String()
	secrets := [][]byte{w.Secret}
	if now.UnixMilli() < w.FormerUntil {
		secrets = append(secrets, w.Former)
	}
	answer, err := c.Sender.Do(ctx, &egress.Request{Method: http.MethodPost, URL: w.URL, Body: body,
		MaxBody: maxAnswer, Truncate: true, Private: true, Header: []egress.Field{
			{Name: "Content-Type", Value: "application/json"},
			{Name: "User-Agent", Value: "Shoal-Webhooks"},
			{Name: "webhook-id", Value: id},
			{Name: "webhook-timestamp", Value: strconv.FormatInt(now.Unix(), 10)},
			{Name: "webhook-signature", Value: sign(id, now.Unix(), body, secrets...)},
		}})
	if err != nil {
		return 0, err
	}
	defer answer.Release()
	return answer.Status, nil
}

// reason is what a customer is told of an error: its code and sentence, nothing about our network.
func reason(err error) string {
	text := string(fault.CodeOf(err))
	var coded *fault.Error
	if errors.As(err, &coded) && coded.Detail != "" {
		text += ": " + coded.Detail
	}
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "")
	}
	return text
}

// name identifies a delivery.
type name struct{ webhook, message ids.ID }
