package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// KeptBackup is a backup that the leader took automatically.
type KeptBackup struct {
	Name      string   `json:"name"`
	ClusterID ids.ID   `json:"clusterId" doc:"Id of the cluster that was backed up"`
	TakenAt   api.Time `json:"takenAt"`
	Bytes     int64    `json:"bytes"`
	RowsBytes int64    `json:"rowsBytes" doc:"Size of the copy of a single process's row store beside it, 0 for none. The newest copy serves older backups, too"`
}

// backups is GET /api/admin/backups.
func (r Resource) backups() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_backups", Routes: operation.Routes("GET /api/admin/backups"), Group: group,
		Summary: "Lists the backups in the blob store, newest first",
		Description: "The list has the backups of all clusters that share the store, at most " +
			"1,000. The leader takes one every --backup-every, and keeps the newest " +
			"--backup-keep of its cluster. Without a blob store the list is empty.",
		Access: auth.Admin, Rate: limits.Read,
	}, func(ctx context.Context, _ *operation.Caller, _ *struct{}) ([]KeptBackup, error) {
		found, err := r.Operator.Backups(ctx)
		if err != nil {
			return nil, err
		}
		backups := make([]KeptBackup, len(found))
		for i, k := range found {
			backups[i] = KeptBackup{Name: k.Name, ClusterID: k.Cluster,
				TakenAt: api.Time(k.Taken.UnixMilli()), Bytes: k.Bytes, RowsBytes: k.Rows}
		}
		return backups, nil
	})
}

type restoreKeptRequest struct {
	Name string         `path:"name" min:"1" max:"128" doc:"The backup's name"`
	Body restoreOptions `body:"json"`
}

// restoreKept is POST /api/admin/backups/{name}/restore.
func (r Resource) restoreKept() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_restore_kept",
		Routes: operation.Routes("POST /api/admin/backups/{name}/restore"), Group: group,
		Summary: "Replaces the replicated state with a backup from the blob store",
		Description: "It does the same as svc_admin_restore, with a backup that " +
			"svc_admin_backups lists.",
		Access: auth.Admin, Rate: limits.General, Timeout: backupTime,
		Errors: []fault.Code{fault.NotFound, fault.InvalidBackup, fault.OtherCluster},
	}, func(ctx context.Context, _ *operation.Caller, in *restoreKeptRequest) (RestoreReport,
		error) {
		restored, err := r.Operator.RestoreKept(ctx, in.Name,
			client.RestoreOptions{Force: in.Body.Force, ReviveKeys: in.Body.ReviveKeys})
		return newReport(restored), err
	})
}
