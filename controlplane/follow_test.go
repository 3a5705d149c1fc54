package controlplane

import (
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/client"
)

// Every node tells its own followers of changes made at any node, at the same index, and of no
// other customer. A restore ends the followings of all nodes.
func TestFollowersAtEveryNode(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 3, 2)
	openCustomer(t, c.at(0), "ann")
	openCustomer(t, c.at(0), "bob")
	file := backupOf(t, c.at(c.untilLed()))
	var followings []*client.Following
	for n := range c.configs {
		fresh(t, c.at(n)) // until it has what was done before
		f := c.at(n).Follow("ann", 0)
		t.Cleanup(f.End)
		<-f.Woken()
		if taken := f.TakeChanges(); len(taken.Touches) > 0 || taken.Missed {
			t.Fatalf("node %d begins with %+v", n, taken)
		}
		followings = append(followings, f)
	}
	source := c.configs[0].IDs
	for n, customer := range []string{"bob", "ann", "bob"} {
		if _, err := client.Do(patient(t), c.at(n+2), client.AdjustWallet{Customer: customer,
			Entry: source.New(), Amount: 7}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n, f := range followings {
		<-f.Woken()
		taken := f.TakeChanges()
		if want := []client.Touch{{What: client.TouchedWallet}}; !slices.Equal(taken.Touches,
			want) || taken.View.Wallet("ann").Balance() != 7 {
			t.Errorf("node %d takes %+v", n, taken)
		}
		late := c.at(n).Follow("ann", taken.Index-1) // another node's stream continues here
		<-late.Reached()
		if taken := late.TakeChanges(); taken.Missed || taken.Over {
			t.Errorf("node %d takes %+v", n, taken)
		}
		late.End()
	}
	if _, err := restore(t, c.at(c.untilLed()), file, false); err != nil {
		t.Fatal(err)
	}
	for n, f := range followings {
		for taken := f.TakeChanges(); !taken.Over; taken = f.TakeChanges() {
			<-f.Woken()
		}
		again := c.at(n).Follow("ann", 0)
		if taken := again.TakeChanges(); taken.Over {
			t.Errorf("node %d: what follows the new state is over, too", n)
		}
		again.End()
	}
}
