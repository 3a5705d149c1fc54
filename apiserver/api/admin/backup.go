package admin

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// backupTime is how long sending or receiving a backup may take.
const backupTime = time.Hour

// backup is GET /api/admin/backup.
func (r Resource) backup() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_backup", Routes: operation.Routes("GET /api/admin/backup"), Group: group,
		Summary: "Answers the whole replicated state as a file",
		Description: "It holds everything that happened before the call, but no rows: those are " +
			"in the row store. It ends " +
			"with a digest, so that one that was cut off is refused. It holds secrets: whoever " +
			"has it has everything but keys.",
		Access: auth.Admin, Rate: limits.General, Timeout: backupTime,
	}, func(_ context.Context, _ *operation.Caller, _ *struct{}) (operation.Download, error) {
		return operation.Download{ContentType: "application/octet-stream",
			Write: r.Operator.Backup}, nil
	})
}

type restoreRequest struct {
	Body   restoreOptions    `body:"json"`
	Stream *operation.Stream `stream:"application/octet-stream"`
}

type restoreOptions struct {
	Force      bool `json:"force" doc:"Take another cluster's backup, too"`
	ReviveKeys bool `json:"reviveKeys" doc:"Let keys that were revoked since the backup be valid again. Without it they stay revoked"`
}

// Validate implements operation.Validator.
func (r *restoreRequest) Validate() fault.List {
	if r.Stream == nil {
		return fault.List{fault.Invalid(fault.UnsupportedMediaType, "Content-Type",
			"must be application/octet-stream")}
	}
	return nil
}

// RestoreReport tells what a backup contained and what restoring it did. Money is in micros.
type RestoreReport struct {
	ClusterID     ids.ID   `json:"clusterId" doc:"Of the cluster that it was taken of"`
	Index         uint64   `json:"index" doc:"Raft index of its newest command"`
	TakenAt       api.Time `json:"takenAt"`
	RunsUndone    int      `json:"runsUndone" doc:"Runs that were launched after the backup. Nobody reads their rows any more"`
	RowsUntil     api.Time `json:"rowsUntil" doc:"Until then their rows are kept, so that another restore may bring them back"`
	RunsReopened  int      `json:"runsReopened" doc:"Runs that had ended and are open again"`
	KeysRevoked   int      `json:"keysRevoked" doc:"Keys of the backup that were revoked since, and stay revoked"`
	KeysRevived   int      `json:"keysRevived" doc:"Keys that were revoked since and are valid again"`
	KeysGone      int      `json:"keysGone" doc:"Keys that were made since, and are not valid any more"`
	CustomersGone int      `json:"customersGone" doc:"Customers who came since"`
	ScrapersGone  int      `json:"scrapersGone" doc:"Scrapers that were made since"`
	ScrapersBack  int      `json:"scrapersBack" doc:"Scrapers that were changed since, and are as they were"`
	BalanceMicros int64    `json:"balanceMicros" doc:"Of all customers together, as it was, in micros, millionths of a euro"`
	BeforeMicros  int64    `json:"beforeMicros" doc:"Of all customers together before the restore, in micros, millionths of a euro"`
}

func newReport(r client.Restored) RestoreReport {
	c := r.Changes
	return RestoreReport{ClusterID: r.Cluster, Index: r.Index, TakenAt: api.Time(r.Taken),
		RunsUndone: c.Undone, RowsUntil: api.Time(r.Until),
		RunsReopened: c.Reopened, KeysRevoked: c.KeysKept, KeysRevived: c.KeysRevived,
		KeysGone:      c.KeysGone,
		CustomersGone: c.CustomersGone, ScrapersGone: c.ScrapersGone, ScrapersBack: c.ScrapersBack,
		BalanceMicros: c.Balance,
		BeforeMicros:  c.BalanceBefore}
}

// restore is POST /api/admin/restore.
func (r Resource) restore() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_restore", Routes: operation.Routes("POST /api/admin/restore"), Group: group,
		Summary: "Puts a backup in the place of the replicated state, on every node",
		Description: "Everything since the backup is undone, but for rows, for the cluster's " +
			"nodes and for who fetches what. Runs that were open then go on: what was stored " +
			"meanwhile is settled and not stored again. Runs that were launched since are read " +
			"no more, and what is stored of them goes a day later. Until then another backup may " +
			"bring them back. The backup is checked whole before anything changes.",
		Access: auth.Admin, Rate: limits.General, Timeout: backupTime,
		Errors: []fault.Code{fault.InvalidBackup, fault.OtherCluster},
	}, func(ctx context.Context, _ *operation.Caller, in *restoreRequest) (RestoreReport, error) {
		if err := in.Stream.Receive(ctx, operation.Verbatim); err != nil {
			return RestoreReport{}, err
		}
		restored, err := r.Operator.Restore(ctx, in.Stream,
			client.RestoreOptions{Force: in.Body.Force, ReviveKeys: in.Body.ReviveKeys})
		return newReport(restored), err
	})
}
