package admin

import (
	"context"
	"io"
	"iter"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/ids"
)

// RecountedRun is the ledger entry of a run and the recount of its page records. Money is in
// micros, 0 or more.
type RecountedRun struct {
	JobID         ids.ID `json:"jobId"`
	CustomerRef   string `json:"customerRef"`
	EntryID       ids.ID `json:"entryId"`
	LedgerMicros  int64  `json:"ledgerMicros" doc:"Micros, millionths of a euro"`
	RecountMicros int64  `json:"recountMicros" doc:"Micros, millionths of a euro"`
	LedgerPages   uint64 `json:"ledgerPages" doc:"Pages charged or paid by free requests"`
	RecountPages  uint64 `json:"recountPages" doc:"Pages delivered"`
	LedgerItems   uint64 `json:"ledgerItems"`
	RecountItems  uint64 `json:"recountItems"`
	Equal         bool   `json:"equal"`
	Unreadable    bool   `json:"unreadable,omitempty" doc:"Its page records cannot be read, though other runs' can; the server's log says why"`
	Undone        bool   `json:"undone,omitempty" doc:"A restore undid the run: it is not in the ledger, and its stored rows cannot be read"`
}

// recount is POST /api/admin/billing/recount. It is costly, but changes nothing.
func (r Resource) recount() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_recount", Routes: operation.Routes("POST /api/admin/billing/recount"),
		Group:   group,
		Summary: "Recomputes every closed run's charge from its page records",
		Description: "Nothing is changed. If a run's ledger entry differs from its page " +
			"records, equal is false. If its page records cannot be read, unreadable is also " +
			"true, and the other runs are still counted. Runs that a restore undid are not in " +
			"the ledger. While something of them is stored, undone is true.",
		Access: auth.Admin, Rate: limits.General, Timeout: 10 * time.Minute,
	}, func(ctx context.Context, from *operation.Caller,
		_ *struct{}) (operation.Streamed[[]RecountedRun], error) {
		var answer operation.Streamed[[]RecountedRun]
		view := from.View
		for _, err := range r.Recount(ctx, view) {
			if err != nil {
				return answer, err // it can have a code only before anything is sent
			}
			break
		}
		answer.Write = func(ctx context.Context, w io.Writer) error {
			next, stop := iter.Pull2(r.Recount(ctx, view))
			defer stop()
			return api.WriteArray(w, func() ([]RecountedRun, error) {
				run, err, more := next()
				if !more {
					return nil, nil
				}
				return []RecountedRun{run}, err
			})
		}
		return answer, nil
	})
}
