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
		Summary: "Returns the whole replicated state as a file",
		Description: "The file holds everything up to the call, but not the row store with rows, " +
			"history and ledger: see svc_admin_backup_rows. It ends with a digest, so a " +
			"truncated file is refused. It holds secrets: whoever has the file has everything " +
			"except API keys.",
		Access: auth.Admin, Rate: limits.General, Timeout: backupTime,
	}, func(_ context.Context, _ *operation.Caller, _ *struct{}) (operation.Download, error) {
		return operation.Download{ContentType: "application/octet-stream",
			Write: r.Operator.Backup}, nil
	})
}

// backupRows is GET /api/admin/backup/rows.
func (r Resource) backupRows() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_backup_rows", Routes: operation.Routes("GET /api/admin/backup/rows"),
		Group:   group,
		Summary: "Returns the row store of a single process as a file",
		Description: "The file is a SQLite database with rows, page records, link lists, history, " +
			"ledger and audit trail, all of one moment of the call. It fits every backup of the " +
			"state that was taken before the call. `shoal cluster restore-rows` puts it into an " +
			"empty data directory. A cluster answers not_found: ClickHouse has backups of its own.",
		Access: auth.Admin, Rate: limits.General, Timeout: backupTime,
		Errors: []fault.Code{fault.NotFound, fault.OutOfSpace},
	}, func(ctx context.Context, _ *operation.Caller, _ *struct{}) (operation.Download, error) {
		_, err := r.Operator.RowsBytes(ctx)
		return operation.Download{ContentType: "application/octet-stream",
			Write: r.Operator.BackupRows}, err
	})
}

type restoreRequest struct {
	Body   restoreOptions    `body:"json"`
	Stream *operation.Stream `stream:"application/octet-stream"`
}

type restoreOptions struct {
	Force      bool `json:"force" doc:"Accept the backup of another cluster, too, and a row store that lacks some of its history. The answer warns of what is missing"`
	ReviveKeys bool `json:"reviveKeys" doc:"Make keys valid again that were revoked since the backup. Otherwise they stay revoked"`
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
	ClusterID     ids.ID   `json:"clusterId" doc:"Id of the cluster that was backed up"`
	Index         uint64   `json:"index" doc:"Raft index of the backup's newest command"`
	TakenAt       api.Time `json:"takenAt"`
	RunsUndone    int      `json:"runsUndone" doc:"Runs launched after the backup. Their rows can no longer be read"`
	RowsUntil     api.Time `json:"rowsUntil" doc:"The rows of undone runs are kept until then, so that another restore can bring them back"`
	RunsReopened  int      `json:"runsReopened" doc:"Runs that had ended and are open again"`
	KeysRevoked   int      `json:"keysRevoked" doc:"Keys in the backup that were revoked since, and stay revoked"`
	KeysRevived   int      `json:"keysRevived" doc:"Keys that were revoked since and are valid again"`
	KeysGone      int      `json:"keysGone" doc:"Keys made since the backup, no longer valid"`
	CustomersGone int      `json:"customersGone" doc:"Customers added since the backup, now gone"`
	ScrapersGone  int      `json:"scrapersGone" doc:"Scrapers made since the backup, now gone"`
	ScrapersBack  int      `json:"scrapersBack" doc:"Scrapers changed since the backup, now as they were"`

	ScrapersReturned  int `json:"scrapersReturned" doc:"Scrapers deleted since the backup, now there again"`
	SchedulesReturned int `json:"schedulesReturned" doc:"Schedules of scrapers and groups removed since the backup, which start runs again"`

	BalanceMicros int64    `json:"balanceMicros" doc:"Total of all customers as restored, in micros, millionths of a euro"`
	BeforeMicros  int64    `json:"beforeMicros" doc:"Total of all customers before the restore, in micros, millionths of a euro"`
	Warnings      []string `json:"warnings" doc:"Which runs are back without their rows, and, if the restore was forced, what the row store lacks of the backup's history"`
}

func newReport(r client.Restored) RestoreReport {
	c := r.Changes
	return RestoreReport{ClusterID: r.Cluster, Index: r.Index, TakenAt: api.Time(r.Taken),
		RunsUndone: c.Undone, RowsUntil: api.Time(r.Until),
		RunsReopened: c.Reopened, KeysRevoked: c.KeysKept, KeysRevived: c.KeysRevived,
		KeysGone:      c.KeysGone,
		CustomersGone: c.CustomersGone, ScrapersGone: c.ScrapersGone, ScrapersBack: c.ScrapersBack,
		ScrapersReturned: c.ScrapersReturned, SchedulesReturned: c.SchedulesReturned,
		BalanceMicros: c.Balance,
		BeforeMicros:  c.BalanceBefore, Warnings: append([]string{}, r.Lacks...)}
}

// restore is POST /api/admin/restore.
func (r Resource) restore() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_restore", Routes: operation.Routes("POST /api/admin/restore"), Group: group,
		Summary: "Replaces the replicated state on every node with a backup",
		Description: "Everything since the backup is undone, except rows, the cluster's nodes " +
			"and which node fetches what. Runs that were open then go on: pages stored " +
			"meanwhile are settled and not stored again. Runs launched since can no longer be " +
			"read, and their rows are deleted a day later. Until then another backup may bring " +
			"them back. The whole backup is checked before anything changes.",
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
