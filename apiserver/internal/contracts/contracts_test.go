package contracts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"shoal.dev/shoal/apiserver/internal/contracts"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// shop is a payment provider that ends things. Ending something twice is no error.
type shop struct {
	payment.Provider
	ended  map[string]int // how often each was to be ended
	refuse string         // prefix of what it refuses to end
}

func (s *shop) End(_ context.Context, id string) error {
	if s.refuse != "" && strings.HasPrefix(id, s.refuse) {
		return errors.New("refused")
	}
	s.ended[id]++
	return nil
}

func (s *shop) Expire(ctx context.Context, id string) error { return s.End(ctx, id) }

// rig is a cluster with customers who have things to end.
type rig struct {
	*testing.T
	fake *clienttest.Client
	ids  ids.Source
	shop *shop

	refused prometheus.Counter
}

func newRig(t *testing.T) *rig {
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &rig{T: t, fake: clienttest.New(t, c), ids: ids.Random{Now: c.Now},
		shop:    &shop{ended: map[string]int{}},
		refused: contracts.CountRefused(telemetry.NewMetrics())}
}

// subscribed makes a customer with a replaced contract and an old checkout.
func (r *rig) subscribed(ref string) {
	r.fake.Must(r, client.OpenCustomer{Customer: ref, Entry: r.ids.New()})
	for n := range 2 {
		r.fake.Must(r, client.TellContract{Customer: ref, Contract: client.Contract{
			ID: fmt.Sprint("sub_", ref, n), Plan: "PRO", Created: int64(n), ToldAt: 1,
			Standing: client.ContractLive, PeriodEnd: 1 << 50}})
	}
	for n := range 2 {
		move := r.ids.New()
		r.fake.Must(r, client.BeginMove{Customer: ref, Move: move})
		r.fake.Must(r, client.OpenCheckout{Customer: ref, Move: move, Checkout: client.Checkout{
			Session: fmt.Sprint("cs_", ref, n), URL: "u", Plan: "TEAM", Expires: 1 << 50}})
	}
}

func (r *rig) remove(ref string) {
	d := client.Deletion{Customer: ref, Operation: client.OpRemoveCustomer}
	r.fake.Must(r, client.PreviewDelete{Deletion: d, Token: "t"})
	r.fake.Must(r, client.RemoveCustomer{Deletion: d, Token: "t", By: "root"})
}

func (r *rig) kind(point func(string)) work.Kind {
	return contracts.Kind(contracts.Config{Client: r.fake, Payments: r.shop, Refused: r.refused,
		Logger: slog.New(slog.DiscardHandler), Point: point})
}

// ended expects exactly these things to be ended, in order of their names.
func (r *rig) ended(want ...string) {
	r.Helper()
	if got := slices.Sorted(maps.Keys(r.shop.ended)); !slices.Equal(got, want) {
		r.Errorf("ended %v, want %v", got, want)
	}
}

// step takes one step, and returns its result.
func (r *rig) step(kind work.Kind) (work.Outcome, error) {
	return kind.Step(r.Context(), work.Item{})
}

// TestWhatIsToEndEnds: for a customer who stays, the older contract and checkout end, and so does a
// checkout that the customer left. For a removed one, everything ends. It happens once.
func TestWhatIsToEndEnds(t *testing.T) {
	r := newRig(t)
	r.subscribed("ann")
	r.subscribed("bob")
	r.remove("bob")
	r.subscribed("cid")
	r.fake.Must(r, client.LeaveCheckout{Customer: "cid", Session: "cs_cid1"})
	kind := r.kind(nil)
	for range 2 {
		if outcome, err := r.step(kind); err != nil || outcome.End != work.Rest(nil, 1).End {
			t.Fatal(outcome, err)
		}
	}
	r.ended("cs_ann0", "cs_bob0", "cs_bob1", "cs_cid0", "cs_cid1", "sub_ann0", "sub_bob0",
		"sub_bob1", "sub_cid0")
	for id, n := range r.shop.ended {
		if n != 1 {
			t.Errorf("%s was ended %d times", id, n)
		}
	}
	if s := r.fake.View().Subscription("ann"); !s.Active() || s.Checkout.Session != "cs_ann1" {
		t.Errorf("of ann: %+v", s)
	}
	if r.fake.View().Subscription("bob").Active() {
		t.Error("bob's contract goes on")
	}
}

// killed ends a step like a process's death.
type killed struct{}

// TestEndingOfTheKilled dies at each point and begins again. Everything ends. Only what was being
// ended at the death is ended twice.
func TestEndingOfTheKilled(t *testing.T) {
	for at := 1; ; at++ {
		r := newRig(t)
		r.subscribed("ann")
		r.subscribed("bob")
		r.remove("bob")
		points, died := 0, false
		kind := r.kind(func(name string) {
			if points++; points == at {
				died = true
				panic(killed{})
			}
		})
		func() {
			defer func() {
				if reason := recover(); reason != nil && reason != any(killed{}) {
					panic(reason)
				}
			}()
			_, _ = r.step(kind)
		}()
		if !died {
			if at < 13 {
				t.Fatalf("only %d points", at-1)
			}
			return
		}
		if _, err := r.step(kind); err != nil {
			t.Fatal(err)
		}
		r.ended("cs_ann0", "cs_bob0", "cs_bob1", "sub_ann0", "sub_bob0", "sub_bob1")
		twice := 0
		for _, n := range r.shop.ended {
			twice += n - 1
		}
		if twice > 1 {
			t.Errorf("killed at point %d: %v", at, r.shop.ended)
		}
		r.fake.View().EndingSubscriptions("", func(s *client.Subscription) bool {
			t.Errorf("killed at point %d: %+v", at, s)
			return true
		})
	}
}

// TestRefusalsKeepNobodyFromEnding: what the provider refuses is tried again after a short rest,
// and everything else ends. The same holds if recording the end fails.
func TestRefusalsKeepNobodyFromEnding(t *testing.T) {
	r := newRig(t)
	r.subscribed("ann")
	r.subscribed("bob")
	r.shop.refuse = "cs_ann"
	kind := r.kind(nil)
	if outcome, err := r.step(kind); err != nil || outcome.End != work.Rested ||
		outcome.Rest > time.Minute {
		t.Errorf("the step ends with %+v, %v", outcome, err)
	}
	var counted dto.Metric
	if err := r.refused.Write(&counted); err != nil || counted.GetCounter().GetValue() != 1 {
		t.Errorf("%v refusals are counted, not 1: %v", counted.GetCounter().GetValue(), err)
	}
	r.ended("cs_bob0", "sub_ann0", "sub_bob0")
	r.shop.refuse = ""
	r.fake.Fail(errors.New("no leader"))
	if outcome, err := r.step(kind); err != nil || outcome.End != work.Rested {
		t.Errorf("what was not noted ends with %+v, %v", outcome, err)
	}
	r.fake.Fail(nil)
	if _, err := r.step(kind); err != nil {
		t.Fatal(err)
	}
	r.ended("cs_ann0", "cs_bob0", "sub_ann0", "sub_bob0")
}

// TestManyRefusalsKeepNobodyFromEnding: the last customer's things end even after hundreds of
// permanent refusals. The provider gets a bounded number of calls in a row.
func TestManyRefusalsKeepNobodyFromEnding(t *testing.T) {
	r := newRig(t)
	for n := range 205 {
		r.subscribed(fmt.Sprintf("bad%03d", n))
	}
	r.subscribed("zoe")
	r.shop.refuse = "cs_bad"
	kind, item := r.kind(nil), work.Item{}
	for steps := 0; r.shop.ended["cs_zoe0"] == 0; steps++ {
		before := len(r.shop.ended)
		outcome, err := kind.Step(r.Context(), item)
		if err != nil || outcome.Rest > time.Minute {
			t.Fatal(outcome, err)
		}
		if asked := len(r.shop.ended) - before; asked > 12 || steps > 21 {
			t.Fatalf("step %d ended %d", steps, asked)
		}
		item.Progress = outcome.Progress
	}
}

// TestEarlierOnesComeRound: customers before the progress are not forgotten.
func TestEarlierOnesComeRound(t *testing.T) {
	r := newRig(t)
	r.subscribed("ann")
	kind := r.kind(nil)
	outcome, err := kind.Step(r.Context(), work.Item{Progress: []byte("bob")})
	if err != nil || outcome.End != work.GoOn(nil).End || len(outcome.Progress) > 0 {
		t.Fatal(outcome, err)
	}
	if _, err := r.step(kind); err != nil {
		t.Fatal(err)
	}
	r.ended("cs_ann0", "sub_ann0")
}

// TestManyEndInSteps: a step is bounded, and the next one follows at once.
func TestManyEndInSteps(t *testing.T) {
	r := newRig(t)
	for n := range 101 {
		r.subscribed(fmt.Sprint("c", n))
	}
	kind := r.kind(nil)
	if outcome, err := r.step(kind); err != nil || outcome.End != work.GoOn(nil).End ||
		len(r.shop.ended) != 200 {
		t.Errorf("%+v, %v: %d are ended", outcome, err, len(r.shop.ended))
	}
	if outcome, err := r.step(kind); err != nil || outcome.End == work.GoOn(nil).End ||
		len(r.shop.ended) != 202 {
		t.Errorf("%+v, %v: %d are ended", outcome, err, len(r.shop.ended))
	}
}
