package admin

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// WorkItem is an item of background work.
type WorkItem struct {
	ID          ids.ID   `json:"id"`
	Kind        string   `json:"kind"`
	CustomerRef *string  `json:"customerRef" doc:"The customer whose work it is; null: the service's own"`
	State       string   `json:"state" enum:"WAITING,READY,HELD,FAILED" doc:"FAILED means given up"`
	Node        *string  `json:"node" doc:"The node that holds it; null: none"`
	CreatedAt   api.Time `json:"createdAt"`
	DueAt       api.Time `json:"dueAt" doc:"From when it may be done"`
	AdvancedAt  api.Time `json:"advancedAt" doc:"When the item last made progress, or came due after a rest"`
	StoodStill  int64    `json:"stoodStillMillis" doc:"How long it has been due without progress"`
	Failures    uint32   `json:"failures" doc:"Failures in a row, without progress"`
	Error       *string  `json:"error" doc:"Error of the newest failure"`
}

func newWorkItem(w *client.WorkItem, now int64) WorkItem {
	item := WorkItem{ID: w.ID, Kind: w.Kind, State: strings.ToUpper(w.State.String()),
		CreatedAt: api.Time(w.Created), DueAt: api.Time(w.At), AdvancedAt: api.Time(w.Advanced),
		StoodStill: w.StoodStill(now), Failures: w.Failures}
	for to, text := range map[**string]string{&item.CustomerRef: w.Customer, &item.Node: w.Node,
		&item.Error: w.Error} {
		if text != "" {
			*to = &text
		}
	}
	return item
}

type workRequest struct {
	Kind     string `query:"kind" max:"32" doc:"Only items of this kind"`
	State    string `query:"state" enum:",WAITING,READY,HELD,FAILED" doc:"Only items in this state"`
	Customer string `query:"customerRef" max:"128" doc:"Only this customer's items"`
	Page     int    `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size     int    `query:"size" default:"50" min:"1" clamp:"200" code:"invalid_page"`
}

func (r *workRequest) wants(w *client.WorkItem) bool {
	return (r.Kind == "" || r.Kind == w.Kind) && (r.Customer == "" || r.Customer == w.Customer) &&
		(r.State == "" || strings.EqualFold(r.State, w.State.String()))
}

// work is GET /api/admin/work.
func (r Resource) work() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_work", Routes: operation.Routes("GET /api/admin/work"), Group: group,
		Summary: "Lists the open background work, stuck items first",
		Description: "Items that were given up come first, then those without progress for " +
			"longest. One node holds an item under a lease; when that ends, another node goes " +
			"on.",
		Access: auth.Admin, Rate: limits.Read, Leaderless: true,
	}, func(_ context.Context, _ *operation.Caller, in *workRequest) (api.Page[WorkItem], error) {
		if err := api.Reach(in.Page, in.Size, "narrow the list"); err != nil {
			return api.Page[WorkItem]{}, err
		}
		var found []*client.WorkItem
		r.Client.View().EachWork(func(w *client.WorkItem) bool {
			if in.wants(w) {
				found = append(found, w)
			}
			return true
		})
		now := r.Clock.Now().UnixMilli()
		slices.SortFunc(found, func(a, b *client.WorkItem) int { return stuckFirst(a, b, now) })
		first := min(in.Page*in.Size, len(found))
		var content []WorkItem
		for _, w := range found[first:min(first+in.Size, len(found))] {
			content = append(content, newWorkItem(w, now))
		}
		return api.NewPage(content, int64(len(found)), in.Page, in.Size), nil
	})
}

// stuckFirst orders items by how urgently somebody should look at them.
func stuckFirst(a, b *client.WorkItem, now int64) int {
	given := func(w *client.WorkItem) int {
		if w.State == client.WorkFailed {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(given(a), given(b)),
		cmp.Compare(b.StoodStill(now), a.StoodStill(now)), bytes.Compare(a.ID[:], b.ID[:]))
}
