package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

func TestDivergent(t *testing.T) {
	digests := func(sums ...uint64) (list []state.Digest) {
		for i, sum := range sums {
			if sum > 0 {
				list = append(list, state.Digest{Index: uint64(10 * (i + 1)), Sum: sum})
			}
		}
		return list
	}
	voters := map[string]bool{"a": true, "b": true, "c": true, "api": false}
	for name, test := range map[string]struct {
		told map[string][]state.Digest
		want map[string]state.Digest
	}{
		"all equal":             {map[string][]state.Digest{"a": digests(1, 2), "b": digests(1, 2), "c": digests(1, 2)}, nil},
		"at other indexes":      {map[string][]state.Digest{"a": digests(1), "b": digests(0, 2), "api": digests(0, 0, 3)}, nil},
		"a follower":            {map[string][]state.Digest{"a": digests(1), "b": digests(2), "c": digests(1)}, map[string]state.Digest{"b": {Index: 10, Sum: 1}}},
		"since the second":      {map[string][]state.Digest{"a": digests(1, 2), "b": digests(1, 3), "c": digests(1, 2)}, map[string]state.Digest{"b": {Index: 20, Sum: 2}}},
		"the leader":            {map[string][]state.Digest{"a": digests(1), "b": digests(2), "c": digests(2)}, map[string]state.Digest{"a": {Index: 10, Sum: 2}}},
		"a replica has no vote": {map[string][]state.Digest{"a": digests(1), "api": digests(2)}, map[string]state.Digest{"api": {Index: 10, Sum: 1}}},
		"one against one":       {map[string][]state.Digest{"a": digests(1), "b": digests(2)}, map[string]state.Digest{"b": {Index: 10, Sum: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := divergent(test.told, voters, "a")
			if len(got) == 0 && len(test.want) == 0 {
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A voter whose state is another than that of the others is told, and knows it.
func TestADivergentVoterIsTold(t *testing.T) {
	t.Parallel()
	c, leads := threeVoters(t)
	differs := (leads + 1) % 3
	until(t, "three voters with the same commands", func() bool { return diverge(t, c, differs) })
	l := c.at(leads).leading.Load()
	if l == nil {
		t.Fatal("the leader does not lead any more")
	}
	if err := l.lookForDivergence(patient(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if found := c.at(i).Diverged() != nil; found != (i == differs) {
			t.Errorf("node %d is found to differ: %v", i, found)
		}
	}
}

// A leader whose state is another than that of the other voters hands over.
func TestADivergentLeaderStepsDown(t *testing.T) {
	t.Parallel()
	c, leads := threeVoters(t)
	l := c.at(leads).leading.Load()
	if l == nil {
		t.Fatal("the leader does not lead any more")
	}
	until(t, "three voters with the same commands", func() bool { return diverge(t, c, leads) })
	if err := l.lookForDivergence(patient(t)); err != nil {
		t.Fatal(err)
	}
	_ = l.stepDownIfDiverged(patient(t)) // its leadership may have ended by then
	until(t, "another leads", func() bool {
		n := c.leader()
		return n >= 0 && n != leads
	})
}

// threeVoters are ready, and one of them leads.
func threeVoters(t *testing.T) (c *nodes, leads int) {
	t.Helper()
	c = newNodes(t, 3, 0)
	openCustomer(t, c.at(0), "ann")
	for i := range 3 {
		c.ready(i)
	}
	return c, c.untilLed()
}

// diverge has one voter apply the first command of the next minute in another way. Not ok: they are not at the same command.
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
