package clickhouse_test

import (
	"sync"
	"testing"

	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// A database is the first one's that claims it, until another one takes it.
func TestClaim(t *testing.T) {
	c := newCluster(t)
	first, second := c.open(nil), c.open(nil)
	for i, step := range []struct {
		store *clickhouse.Store
		owner string
		take  bool
		want  string
	}{
		{first, "a1", false, "a1"}, {second, "a1", false, "a1"}, {second, "b2", false, "a1"}, {second, "b2", true, "b2"},
		{first, "a1", false, "b2"}, {first, "b2", false, "b2"},
	} {
		if whose, err := step.store.Claim(t.Context(), step.owner, step.take); err != nil || whose != step.want {
			t.Errorf("step %d: the database is %q's, %v; want %q's", i, whose, err, step.want)
		}
	}
}

// Of many who claim a database at once one has it, and all know who.
func TestClaimAtOnce(t *testing.T) {
	c := newCluster(t)
	owners := []string{"a", "b", "c", "d"}
	got := make([]string, len(owners))
	var claims sync.WaitGroup
	for i, owner := range owners {
		store := c.open(nil)
		claims.Go(func() {
			var err error
			if got[i], err = store.Claim(t.Context(), owner, false); err != nil {
				t.Error(err)
			}
		})
	}
	claims.Wait()
	for _, whose := range got {
		c.equal("owner", got[0], whose)
	}
}
