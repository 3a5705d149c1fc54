package frontier

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// However much work a customer has, and however long it runs, others find places: at their own
// hosts and at the customer's.
func TestNobodyTakesAllPlaces(t *testing.T) {
	const most = 256
	f, now := New(epoch, most, 0, func() float64 { return 0.5 }), epoch
	add := func(customer, items int) {
		for n := range items {
			f.Add(item(customer, customer, fmt.Sprint("host-", n), Pace{}), now)
			f.Add(item(customer, customer, fmt.Sprintf("host-%d-%d", customer, n), Pace{}), now)
		}
	}
	start := func() map[string]int {
		started := map[string]int{}
		for it, _ := f.Next(now); it != nil; it, _ = f.Next(now) {
			started[it.Customer]++
		}
		return started
	}
	add(1, 1000)
	if got := start(); got["customer-1"] != most*8/9+1 {
		t.Errorf("one alone starts %v of %d", got, most)
	}
	add(2, 1000)
	if got := start(); got["customer-2"] != 25 {
		t.Errorf("then another starts %v", got)
	}
	add(3, 1)
	if got := start(); got["customer-3"] != 2 || len(got) != 1 {
		t.Errorf("then one who has two items starts %v", got)
	}
}

// A customer that holds many bytes starts nothing. Others do, also at its hosts.
func TestRest(t *testing.T) {
	f, now := New(epoch, 0, 640, func() float64 { return 0.5 }), epoch
	pace := Pace{Connections: 1}
	f.Add(item(1, 1, "a", Pace{}), now)
	running := takeItem(t, f, now)
	f.Add(item(1, 1, "b", pace), now)
	f.Add(item(1, 1, "a", pace), now)
	f.Weigh("customer-1", 160)
	if f.Rests("customer-1") || f.Beyond() != 150 {
		t.Fatalf("who holds a share rests, or others wait for %d bytes", 160-f.Beyond())
	}
	f.Weigh("customer-1", 1)
	idle(t, f, now, Forever)
	other := item(2, 2, "b", pace)
	f.Add(other, now)
	if it := takeItem(t, f, now); it != other {
		t.Fatalf("%v of who rests came first", it)
	}
	idle(t, f, now, Forever)
	f.Weigh("customer-1", -161)
	idle(t, f, now, Forever) // both hosts' only connections are in use
	f.Free(running, Answer{}, now)
	if it := takeItem(t, f, now); it.Host != "a" {
		t.Fatalf("%v came, whose host is busy", it)
	}
	f.Done(running, Answer{Host: "a", Throttled: true}, now) // it was answered
	f.Done(other, Answer{}, now)
	if it := takeItem(t, f, now); it.Host != "b" {
		t.Fatalf("%v came", it)
	}
}

// While all bytes are held, customers below their least share may begin. Others may not, except for
// items that keep bytes.
func TestRestOfMany(t *testing.T) {
	f, now := New(epoch, 0, 640, func() float64 { return 0.5 }), epoch
	for c := range 6 {
		f.Weigh(fmt.Sprint("customer-", c), 110)
	}
	f.Weigh("customer-6", 10)
	for c := range 7 {
		f.Add(item(c, c, "a", Pace{}), now)
	}
	kept := item(0, 0, "a", Pace{})
	f.Add(kept, now)
	if it := takeItem(t, f, now); it.Customer != "customer-6" {
		t.Errorf("%s begins something", it.Customer)
	}
	idle(t, f, now, Forever)
	if !f.TakeItem(kept, true, now) {
		t.Error("what keeps bytes may not go on")
	}
	f.Weigh("customer-5", -40)
	for range 6 {
		takeItem(t, f, now)
	}
}

// At a host where others wait, an item taken out of turn gets every second start.
func TestTakeBesideOthers(t *testing.T) {
	f, now := newFrontier(), epoch
	pace := Pace{Rate: 1}
	var kept []*Item
	for range 4 {
		kept = append(kept, item(1, 1, "a", pace))
		f.Add(kept[len(kept)-1], now)
		f.Add(item(2, 2, "a", pace), now)
	}
	var order []string
	for range 4 {
		for _, it := range kept {
			if f.TakeItem(it, true, now) {
				order = append(order, it.Customer)
				break
			}
		}
		if it, _ := f.Next(now); it != nil {
			order = append(order, it.Customer)
		}
		now = now.Add(time.Second)
	}
	want := []string{"customer-1", "customer-2", "customer-1", "customer-2"}
	if !slices.Equal(order, want) {
		t.Errorf("order is %v, want %v", order, want)
	}
}
