package leadership

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/state"
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
		"all equal": {map[string][]state.Digest{"a": digests(1, 2), "b": digests(1, 2),
			"c": digests(1, 2)}, nil},
		"at other indexes": {map[string][]state.Digest{"a": digests(1), "b": digests(0, 2),
			"api": digests(0, 0, 3)}, nil},
		"a follower": {map[string][]state.Digest{"a": digests(1), "b": digests(2),
			"c": digests(1)}, map[string]state.Digest{"b": {Index: 10, Sum: 1}}},
		"since the second": {map[string][]state.Digest{"a": digests(1, 2), "b": digests(1, 3),
			"c": digests(1, 2)}, map[string]state.Digest{"b": {Index: 20, Sum: 2}}},
		"the leader": {map[string][]state.Digest{"a": digests(1), "b": digests(2),
			"c": digests(2)}, map[string]state.Digest{"a": {Index: 10, Sum: 2}}},
		"a replica has no vote": {map[string][]state.Digest{"a": digests(1), "api": digests(2)},
			map[string]state.Digest{"api": {Index: 10, Sum: 1}}},
		"one against one": {map[string][]state.Digest{"a": digests(1), "b": digests(2)},
			map[string]state.Digest{"b": {Index: 10, Sum: 1}}},
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
