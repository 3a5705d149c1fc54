//go:build linux

package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
)

// probers write at once, so that one hanging call does not decide the result.
const probers = 3

// TestFailover measures the time from a leader's kill to the next accepted write. It prints the
// figures, and fails only if they exceed -failover-p99.
func TestFailover(t *testing.T) {
	if *kills == 0 {
		t.Skip("by -leader-kills (make failover)")
	}
	c := newCluster(t, newNetwork(t), cluster.Layout(3, 1, 1, 1, 2), nil)
	start(t, c)
	ctx := suite.Within(t, time.Duration(*kills)*settleTime)
	admin := clientOf(c, suite.Must(mint(ctx, c, "--admin"))(t))
	who := clientOf(c, suite.Must(mint(ctx, c, "--customer", "failover"))(t))
	ref := suite.Must(who.Whoami(ctx))(t)
	var took []time.Duration
	for range *kills {
		if err := c.Settled(ctx); err != nil {
			t.Fatal(err)
		}
		leader := suite.Must(c.Leader(ctx))(t)
		leader.Kill()
		begin := time.Now()
		if err := anyWrite(ctx, admin, ref); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begin))
		if err := leader.Start(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(int(share*float64(len(took))), len(took)-1)]
	}
	t.Logf("leader kill to next accepted write, %d kills: p50 %v, p90 %v, p99 %v, max %v",
		len(took),
		at(0.5).Round(time.Millisecond), at(0.9).Round(time.Millisecond),
		at(0.99).Round(time.Millisecond),
		took[len(took)-1].Round(time.Millisecond))
	if *failover > 0 && at(0.99) > *failover {
		t.Errorf("p99 is %v, at most %v", at(0.99), *failover)
	}
}

// anyWrite returns once a write that began after the call is accepted.
func anyWrite(ctx context.Context, admin suite.Client, ref string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, probers)
	for range probers {
		go func() {
			key := suite.NewKey()
			for {
				err := admin.Again(key).Adjust(ctx, ref, 1)
				if err == nil || !transient(err) || ctx.Err() != nil {
					done <- err
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		}()
	}
	first := <-done
	cancel()
	for range probers - 1 {
		<-done
	}
	return first
}
