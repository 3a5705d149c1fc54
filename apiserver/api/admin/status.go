package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// ClusterStatus is the cluster as seen by the node that answers.
type ClusterStatus struct {
	Node     string           `json:"node"`
	Roles    []string         `json:"roles"`
	Leader   string           `json:"leader"`
	Term     uint64           `json:"term"`
	Applied  uint64           `json:"applied" doc:"Raft index of the newest applied command"`
	Commands uint64           `json:"commands" doc:"Commands applied since the process started"`
	Shards   int              `json:"shards"`
	Owned    int              `json:"owned" doc:"Shards that have an owner"`
	OpenJobs int              `json:"openJobs"`
	Out      int              `json:"out" doc:"Units dispatched and not settled"`
	Pages    uint64           `json:"pages" doc:"Pages settled since the process started, delivered or errored"`
	Errors   uint64           `json:"pageErrors" doc:"Pages of these that errored"`
	Lag      map[string]int64 `json:"lag" doc:"Records that each topic still holds, for topics where this is known"`
}

// status is GET /api/admin/status.
func (r Resource) status() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_status", Routes: operation.Routes("GET /api/admin/status"), Group: group,
		Summary: "Returns roles, Raft, shards and lag as the answering node sees them",
		Access:  auth.Admin, Rate: limits.Read, Leaderless: true,
	}, func(ctx context.Context, _ *operation.Caller, _ *struct{}) (ClusterStatus, error) {
		c, err := r.Client.Status(ctx)
		if err != nil {
			return ClusterStatus{}, err
		}
		return ClusterStatus{Node: c.Node, Roles: append([]string{}, c.Roles...), Leader: c.Leader,
			Term:    c.Term,
			Applied: c.Applied, Commands: c.Commands, Shards: c.Shards, Owned: c.Owned,
			OpenJobs: c.OpenJobs, Out: c.Out,
			Pages: c.Pages, Errors: c.PageErrors,
			Lag: r.Lag(ctx)}, nil
	})
}
