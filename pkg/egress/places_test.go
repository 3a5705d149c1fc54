package egress

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// hanging answers no name under .dead.test.
type hanging struct{ asked atomic.Int32 }

func (r *hanging) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(host, ".dead.test") {
		r.asked.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// However many names of one caller hang, another's is looked up. That a name waited in vain for its
// turn says nothing of it.
func TestHangingNamesHoldNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := &hanging{}
		n := newNames(resolver, clock.System{})
		defer n.close()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		var asking sync.WaitGroup
		failed := sync.Map{}
		for i := range 227 {
			host := fmt.Sprintf("h%d.dead.test", i)
			asking.Go(func() {
				_, err := n.lookup(ctx, "greedy", host)
				failed.Store(host, fault.CodeOf(err))
			})
		}
		synctest.Wait()
		const share = 51 // of 64: four times what is left
		if got := resolver.asked.Load(); got != share {
			t.Errorf("%d names of one caller are asked for at a time, want %d", got, share)
		}
		asking.Go(func() {
			if _, err := n.lookup(ctx, "greedy", "both.test"); err != nil {
				t.Errorf("a name that another caller wants, too: %v", err)
			}
		})
		synctest.Wait()
		for _, caller := range []string{"seldom", "another", ""} {
			for _, host := range []string{"both.test", "alive-of-" + caller + ".test"} {
				if _, err := n.lookup(ctx, caller, host); err != nil {
					t.Errorf("%s of %q: %v", host, caller, err)
				}
			}
		}
		begun := time.Now()
		asking.Wait()
		if since := time.Since(begun); since != 25*time.Second {
			t.Errorf("the names are waited for %v", since)
		}
		counts := map[fault.Code]int{}
		failed.Range(func(_, code any) bool { counts[code.(fault.Code)]++; return true })
		if counts[fault.PageDNS] != 2*share || counts[fault.PageTimeout] != 227-2*share {
			t.Errorf("names end as %v", counts)
		}
		if len(n.places.waiting) > 0 {
			t.Errorf("%d are in line after their time", len(n.places.waiting))
		}
	})
}

// The last place is for who has none, and what is given back is all there again.
func TestPlacesOfLookups(t *testing.T) {
	p := places{free: maxLookups, of: map[string]int{}}
	var given, waiting []*place
	enter := func(caller string) bool {
		at := p.enter(caller)
		if at.isGiven() {
			given = append(given, at)
		} else {
			waiting = append(waiting, at)
		}
		return at.isGiven()
	}
	for caller := 0; p.free > 1; caller++ {
		for enter(fmt.Sprint("caller ", caller)) {
		}
	}
	if enter("caller 0") || !enter("new") || enter("newer") {
		t.Errorf("the last place is not for who has none: %d are free", p.free)
	}
	for _, at := range given {
		p.leave(at)
	}
	for _, at := range waiting {
		p.leave(at)
	}
	if p.free != maxLookups || len(p.of) > 0 || len(p.waiting) > 0 {
		t.Errorf("%d are free, %v are held, %d wait", p.free, p.of, len(p.waiting))
	}
}
