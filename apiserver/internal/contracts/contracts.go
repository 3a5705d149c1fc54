// Package contracts owns how the payment provider is brought to end what is to end. These are
// checkouts and contracts that newer ones replaced, or whose customer was removed. What is to end
// is replicated state; this does it, and notes that it is done.
package contracts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

const (
	endedAtOnce   = 100 // customers of one step
	refusedAtOnce = 10  // customers of one step of whom something did not end
	askTime       = 20 * time.Second
	restFor       = 10 * time.Second
	// refusedRest is the rest after refusals. It is also how long others wait behind an outage.
	refusedRest = time.Minute
)

// Config is what the ending works with. Point may be left out.
type Config struct {
	Client   client.Client
	Payments payment.Provider
	Logger   *slog.Logger
	Refused  prometheus.Counter // attempts that failed
	// Point is called at "work.contracts.before_end" and "work.contracts.after_end", so that tests
	// can end the process there.
	Point func(name string)
}

// CountRefused declares the count of attempts that failed. It stands, at 0, where there is no
// payment provider, too.
func CountRefused(to *telemetry.Metrics) prometheus.Counter {
	return to.Counter("shoal_apiserver_endings_refused_total",
		"Attempts to end a subscription or a checkout at the payment provider that failed.")
}

// Kind is the ending, a kind of background work. Who dies behind the provider's answer ends the
// same thing again, which has ended then. What the provider refuses keeps no other from ending: the
// steps go round by customer. The log and a counter tell of refusals; no step fails by them.
func Kind(config Config) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Contracts, Recurring: true, AtStart: true, Step: config.step}
}

// step ends what is to end of some customers, those behind the last one of the step before.
func (c *Config) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	due := c.dueAfter(string(item.Progress))
	failed := 0
	for n, s := range due {
		if err := c.end(ctx, s); ctx.Err() != nil {
			return work.Outcome{}, fmt.Errorf("apiserver: end at the payment provider: %w", err)
		} else if err != nil {
			failed++
			c.Refused.Inc()
			c.Logger.Warn("not ended at the payment provider", "customer", s.Customer,
				"error", err)
		}
		if failed == refusedAtOnce {
			return work.Rest(goOnAfter(due[:n+1]), refusedRest), nil
		}
	}
	switch {
	case len(due) == endedAtOnce:
		return work.GoOn(goOnAfter(due)), nil
	case failed > 0:
		return work.Rest(nil, refusedRest), nil
	case len(item.Progress) > 0:
		return work.GoOn(nil), nil // with those before it
	}
	return work.Rest(nil, restFor), nil
}

// goOnAfter is the progress behind some customers.
func goOnAfter(done []*client.Subscription) []byte {
	return []byte(done[len(done)-1].Customer)
}

func (c *Config) dueAfter(customer string) (due []*client.Subscription) {
	c.Client.View().EndingSubscriptions(customer, func(s *client.Subscription) bool {
		due = append(due, s)
		return len(due) < endedAtOnce
	})
	return due
}

// end ends all that is to end of one customer. One thing that fails leaves the others to be ended.
func (c *Config) end(ctx context.Context, s *client.Subscription) (failed error) {
	for _, session := range s.Stale {
		failed = errors.Join(failed, c.endOne(ctx, "checkout", session, c.Payments.Expire,
			func() error {
				_, err := client.Do(ctx, c.Client,
					client.EndCheckout{Customer: s.Customer, Session: session}, nil)
				return err
			}))
	}
	for _, contract := range s.Leaving {
		failed = errors.Join(failed, c.endOne(ctx, "contract", contract, c.Payments.End,
			func() error {
				_, err := client.Do(ctx, c.Client, client.TellContract{Customer: s.Customer,
					Contract: client.Contract{ID: contract, Standing: client.ContractEnded}}, nil)
				return err
			}))
	}
	return failed
}

// endOne has the provider end something, then notes it.
func (c *Config) endOne(ctx context.Context, what, id string,
	end func(ctx context.Context, id string) error, note func() error) error {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c.Point("work.contracts.before_end")
	if err := end(asking, id); err != nil {
		return fmt.Errorf("%s %s: %w", what, id, err)
	}
	c.Point("work.contracts.after_end")
	if err := note(); err != nil {
		return fmt.Errorf("%s %s: %w", what, id, err)
	}
	c.Logger.Info("ended at the payment provider", what, id)
	return nil
}
