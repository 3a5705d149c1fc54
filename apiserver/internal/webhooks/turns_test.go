package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/work"
)

// TestManySlowHoldUpNobody: receivers that take long, but answer well, leave half of the calls to
// others. That they are slow is known from one step to the next.
func TestManySlowHoldUpNobody(t *testing.T) {
	d := newDesk(t, loopback())
	hang := make(chan struct{})
	slow := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-hang })
	release := sync.OnceFunc(func() { close(hang) })
	t.Cleanup(release)
	called := func() int {
		heads, _ := slow.calls()
		return len(heads)
	}
	const customers, hooks = 8, 2
	allHear := func() {
		for n := range customers {
			d.happens(fmt.Sprint("slow ", n))
		}
	}
	for n := range customers {
		d.customer(fmt.Sprint("slow ", n))
		for range hooks {
			d.hook(fmt.Sprint("slow ", n), slow.URL)
		}
	}
	kind, ended := d.kind(), make(chan error, 1)
	step := func() {
		_, err := kind.Step(context.Background(), work.Item{})
		ended <- err
	}
	await := func(what func() bool) {
		t.Helper()
		for !what() {
			select {
			case err := <-ended:
				t.Fatalf("it ended while receivers were silent: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	allHear()
	go step()
	await(func() bool { return called() == customers*hooks })
	d.clock.Advance(quick + time.Millisecond)
	for range customers * hooks {
		hang <- struct{}{}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for range ofCustomer {
		allHear()
	}
	d.customer("bob")
	hook := d.hook("bob", newReceiver(t, takes).URL)
	const known = customers * hooks
	go step()
	await(func() bool { return called() >= known+slowAtOnce })
	d.happens("bob")
	d.clock.Advance(quick + time.Millisecond)
	hang <- struct{}{} // the step looks again
	await(func() bool {
		if n := called() - known - 1; n > slowAtOnce {
			t.Fatalf("%d calls of slow receivers at once", n)
		}
		return d.newest(hook).State == "DELIVERED"
	})
	d.clock.Advance(stepFor)
	release()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// silent is a sender whose calls last until they are cut off.
type silent struct{}

func (silent) CheckURL(string) error { return nil }

func (silent) Do(ctx context.Context, _ *egress.Request) (*egress.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCustomersTakeTurns: however much of the oldest is due for a few customers, all have calls.
func TestCustomersTakeTurns(t *testing.T) {
	d := newDesk(t)
	const customers = 2 * atOnce / ofCustomer
	for n := range customers {
		ref := fmt.Sprint("customer ", n)
		d.customer(ref)
		for range ofCustomer / ofWebhook {
			d.hook(ref, "https://shop.test")
		}
		for range ofWebhook {
			d.happens(ref)
		}
		d.clock.Advance(time.Second) // later ones have newer events
	}
	ctx, cancel := context.WithCancel(t.Context())
	b := newBatch(&caller{Config: Config{Sender: silent{}, Client: d.client, Clock: d.clock}})
	defer b.wait()
	defer cancel()
	b.fill(ctx)
	for n := range customers {
		ref := fmt.Sprint("customer ", n)
		if got := b.customers[ref]; got != atOnce/customers {
			t.Errorf("%s has %d of %d calls", ref, got, len(b.open))
		}
	}
	d.customer("newcomer")
	d.hook("newcomer", "https://shop.test")
	d.happens("newcomer")
	for of := range b.open {
		b.end(answer{name: of}, nil)
		break
	}
	if b.fill(ctx); b.customers["newcomer"] != 1 {
		t.Error("who has no call waits for those who have some")
	}
	cancel()
	<-b.answers // of the call that was ended by hand
}
