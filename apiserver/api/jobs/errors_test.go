package jobs_test

import (
	"context"
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// failing is a store in which every run has the given number of failed links.
type failing struct {
	rowstore.Store
	errors, most int // most is the largest number asked for at once
}

func (f *failing) LinkErrors(_ context.Context, _ ids.ID, after *model.Unit,
	most int) ([]rowstore.LinkError, error) {
	f.most = max(f.most, most)
	var found []rowstore.LinkError
	seq := 0
	if after != nil {
		seq = int(after.Seq) + 1
	}
	for ; seq < f.errors && len(found) < most; seq++ {
		found = append(found, rowstore.LinkError{Unit: model.Unit{Seq: uint32(seq)},
			URL: "https://shop.test/?a&b", Code: "timeout"})
	}
	return found, nil
}

// All errors are returned, and never all in memory at once.
func TestManyErrors(t *testing.T) {
	store := &failing{Store: apitest.NewStore(t)}
	r := startOn(t, store)
	job := r.launch(t, r.scraper, 10_000)
	path := fmt.Sprintf("GET /api/scraper/load-history/group/%s/job/%s/errors", r.group, job)
	for _, c := range []struct{ errors, limit, want int }{{0, 100_000, 0}, {999, 100_000, 999},
		{1000, 100_000, 1000}, {2500, 100_000, 2500},
		{2500, 2000, 2000}, {2500, 1, 1}} {
		store.errors = c.errors
		a := r.Call(t, apitest.Scenario{As: apitest.Reader,
			Do: fmt.Sprintf("%s?limit=%d", path, c.limit)})
		list, _ := a.JSON.([]any)
		if a.Status != 200 || list == nil || len(list) != c.want {
			t.Fatalf("%+v: status %d, %d errors", c, a.Status, len(list))
		}
		for i, e := range list {
			if place := e.(map[string]any)["place"]; place != fmt.Sprintf("%d.0", i) {
				t.Fatalf("%+v: error %d is at %v", c, i, place)
			}
		}
	}
	if store.most > 1000 {
		t.Errorf("%d errors were read at once", store.most)
	}
}
