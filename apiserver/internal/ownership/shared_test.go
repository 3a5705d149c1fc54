package ownership_test

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// sharing is a state with a group of alice that is shared with bob, among many other shares.
func sharing(t testing.TB, others int) (*client.View, ids.ID) {
	t.Helper()
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, source := clienttest.New(t, now), ids.Random{Now: now.Now}
	for _, customer := range []string{"alice", "bob", "carol"} {
		c.Must(t, client.OpenCustomer{Customer: customer, Entry: source.New()})
	}
	c.Must(t, client.SignUp{Customer: "bob", Email: "bob@x.test"})
	group := source.New()
	for n := range others + 1 {
		c.Must(t, client.PutGroup{Create: true, ID: group, Customer: "alice",
			Name: fmt.Sprint("g", n), DataTable: "t", StartType: "MANUAL"})
		c.Must(t, client.ShareGroup{Customer: "alice", Group: group,
			Emails: []string{"bob@x.test", "dave@x.test"}})
		if n < others {
			group = source.New()
		}
	}
	return c.View(), group
}

// A share shows the group, its scrapers and runs to whoever has the address, and no other group.
// The shared records do not become the reader's own.
func TestReads(t *testing.T) {
	v, group := sharing(t, 1)
	for customer, want := range map[string]bool{"alice": true, "bob": true, "carol": false} {
		if got := ownership.Reads(v, customer, "alice", group); got != want {
			t.Errorf("%s reads: %v", customer, got)
		}
		_, err := ownership.ReadableGroup(v, customer, group, "id")
		if (err == nil) != want {
			t.Errorf("%s reads the group: %v", customer, err)
		}
		_, err = ownership.Group(v, customer, group, "id")
		if own := customer == "alice"; (err == nil) != own {
			t.Errorf("%s has the group: %v", customer, err)
		}
	}
	if ownership.Reads(v, "bob", "carol", group) {
		t.Error("what is not the group's owner's is read")
	}
	if ownership.Reads(v, "bob", "alice", ids.ID{}) {
		t.Error("what is in no group is read")
	}
}

// BenchmarkReads measures the check for the owner of a group and for a reader of its share.
func BenchmarkReads(b *testing.B) {
	v, group := sharing(b, 99) // of one customer with one address
	for _, customer := range []string{"alice", "bob"} {
		b.Run(customer, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ownership.ReadableGroup(v, customer, group, "id"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
