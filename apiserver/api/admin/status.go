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
	Applied  uint64           `json:"applied" doc:"Raft index"`
	Commands uint64           `json:"commands" doc:"Applied since the process started"`
	Shards   int              `json:"shards"`
	Owned    int              `json:"owned" doc:"Shards with an owner"`
	OpenJobs int              `json:"openJobs"`
	Out      int              `json:"out" doc:"Units out"`
	Pages    uint64           `json:"pages" doc:"Delivered or errored and settled since the process started"`
	Errors   uint64           `json:"pageErrors" doc:"Of these, errored"`
	Lag      map[string]int64 `json:"lag" doc:"Records that each topic still holds, of those that it is known of"`
}

// status is GET /api/admin/status.
func (r Resource) status() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_status", Routes: operation.Routes("GET /api/admin/status"), Group: group,
		Summary: "Answers roles, Raft, shards and lag as the answering node sees them",
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
