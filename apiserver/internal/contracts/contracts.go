// Package contracts ends checkouts and contracts at the payment provider. They have been replaced
// by newer ones, or their customer was removed. What is to end is replicated state. This package
// ends it and records that.
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
	endedAtOnce   = 100 // customers per step
	refusedAtOnce = 10  // customers per step for whom something failed to end
	askTime       = 20 * time.Second
	restFor       = 10 * time.Second
	// refusedRest is the rest after refusals. After an outage, others wait that long, too.
	refusedRest = time.Minute
)

// Config is what a Kind needs. Point is optional.
type Config struct {
	Client   client.Client
	Payments payment.Provider
	Logger   *slog.Logger
	Refused  prometheus.Counter // failed attempts
	// Point is called at "work.contracts.before_end" and "work.contracts.after_end". Tests end the
	// process there.
	Point func(name string)
}

// CountRefused declares the counter of failed attempts. It exists, at 0, without a payment
// provider, too.
func CountRefused(to *telemetry.Metrics) prometheus.Counter {
	return to.Counter("shoal_apiserver_endings_refused_total",
		"Failed attempts to end a subscription or a checkout at the payment provider.")
}

// Kind is the kind of background work that ends things at the provider. After a crash it ends the
// same thing again, which does no harm. Refusals of the provider do not hold up others, since the
// steps go round the customers. They are logged and counted, and fail no step.
func Kind(config Config) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Contracts, Recurring: true, AtStart: true, Step: config.step}
}

// step ends things for the customers after the last one of the step before.
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
		return work.GoOn(nil), nil // start over with the first customers
	}
	return work.Rest(nil, restFor), nil
}

// goOnAfter is the progress after these customers.
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

// end ends everything due for one customer. If one thing fails, it goes on with the others.
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

// endOne has the provider end one thing, then records it.
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
