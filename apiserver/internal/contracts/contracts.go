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

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/work"
)

const (
	endedAtOnce = 100 // customers of one step
	askTime     = 20 * time.Second
	restFor     = 10 * time.Second
)

// Config is what the ending works with. Point may be left out.
type Config struct {
	Client   client.Client
	Payments payment.Provider
	Logger   *slog.Logger
	// Point is called at "work.contracts.before_end" and "work.contracts.after_end", so that tests
	// can end the process there.
	Point func(name string)
}

// Kind is the ending, a kind of background work. Who dies behind the provider's answer ends the
// same thing again, which has ended then. What the provider refuses keeps no other from ending.
func Kind(config Config) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Contracts, Recurring: true, AtStart: true, Step: config.step}
}

// step ends what is to end of some customers.
func (c *Config) step(ctx context.Context, _ work.Item) (work.Outcome, error) {
	due := c.due()
	if len(due) == 0 {
		return work.Rest(nil, restFor), nil
	}
	var failed error
	for _, s := range due {
		if err := c.end(ctx, s); err != nil {
			failed = errors.Join(failed, fmt.Errorf("subscription of %s: %w", s.Customer, err))
		}
	}
	if failed != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: end at the payment provider: %w", failed)
	}
	if len(due) == endedAtOnce {
		return work.GoOn(nil), nil
	}
	return work.Rest(nil, restFor), nil
}

func (c *Config) due() (due []*client.Subscription) {
	c.Client.View().EndingSubscriptions(func(s *client.Subscription) bool {
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
