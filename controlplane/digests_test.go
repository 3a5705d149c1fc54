package controlplane

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// A voter whose state differs from the others' is told so, and remembers it.
func TestADivergentVoterIsTold(t *testing.T) {
	t.Parallel()
	c, leads := threeVoters(t)
	differs := (leads + 1) % 3
	until(t, "three voters with the same commands", func() bool { return diverge(t, c, differs) })
	until(t, "the voter is told", func() bool { return c.at(differs).Diverged() != nil })
	for i := range 3 {
		if found := c.at(i).Diverged() != nil; found != (i == differs) {
			t.Errorf("node %d is found to differ: %v", i, found)
		}
	}
}

// A leader whose state differs from the other voters' steps down.
func TestADivergentLeaderStepsDown(t *testing.T) {
	t.Parallel()
	c, leads := threeVoters(t)
	until(t, "three voters with the same commands", func() bool { return diverge(t, c, leads) })
	until(t, "another leads", func() bool {
		n := c.leader()
		return n >= 0 && n != leads
	})
}

// threeVoters returns three ready voters, one of which leads.
func threeVoters(t *testing.T) (c *nodes, leads int) {
	t.Helper()
	c = newNodes(t, 3, 0)
	openCustomer(t, c.at(0), "ann")
	for i := range 3 {
		c.ready(i)
	}
	return c, c.untilLed()
}

// diverge has one voter apply the first command of the next minute differently. Not ok: the voters
// are not at the same command.
func diverge(t *testing.T, c *nodes, differs int) bool {
	t.Helper()
	var stores []*state.Store
	for i := range 3 {
		defer c.at(i).node.Between()()
		stores = append(stores, c.at(i).node.Store())
	}
	index, now := stores[0].Progress()
	for _, store := range stores {
		if at, _ := store.Progress(); at != index {
			return false
		}
	}
	for i, store := range stores {
		err := store.Update(index+1, now+60_000, func(tx *state.Tx) error {
			if i == differs {
				tx.AddRun(state.NewRun(ids.ID{1}))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return true
}
