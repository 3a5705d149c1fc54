// Package events owns the stream that tells a customer of all changes (specification 6, decision
// 25). Events are derived from the commands that this server applies. Only the most recent changes
// are kept for it.
package events

import (
	"shoal.dev/shoal/apiserver/api/jobs"
	"shoal.dev/shoal/apiserver/api/notifications"
	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

const group = "Events"

// Resource has the operations on events and their dependencies.
type Resource struct {
	Client  client.Client
	Clock   clock.Clock
	History *client.History
}

// Operations lists all operations.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.stream(),
		r.issue(),
	}
}

// The names of the events.
const (
	jobStatus     = "job.status"
	mergeEnded    = "group.merge.completed"
	matchEnded    = "match.completed"
	walletUpdated = "wallet.updated"
	topUpStatus   = "topup.status"
	notification  = "notification"
	resync        = "resync"
)

// JobStatusEvent tells the progress of a run.
type JobStatusEvent struct {
	JobID     ids.ID `json:"jobId"`
	ScraperID ids.ID `json:"scraperId"`
	GroupID   ids.ID `json:"groupId"`
	jobs.JobProgress
}

// MergeEvent tells that a merge is complete.
type MergeEvent struct {
	GroupID         ids.ID `json:"groupId" doc:"Group whose runs were merged"`
	EnrichedGroupID ids.ID `json:"enrichedGroupId" doc:"Group that has the merged rows"`
	JobID           ids.ID `json:"jobId"`
	MergedItems     uint64 `json:"mergedItems"`
}

// MatchEvent tells that a match is complete.
type MatchEvent struct {
	GroupID        ids.ID `json:"groupId" doc:"Group whose rows were matched"`
	MatchedGroupID ids.ID `json:"matchedGroupId" doc:"Group that has a row for each matched row"`
	JobID          ids.ID `json:"jobId"`
	MatchedItems   uint64 `json:"matchedItems"`
}

// TopUpEvent tells the state of a top-up.
type TopUpEvent struct {
	SessionID string `json:"sessionId"`
	wallet.TopUpStatus
}

// NotificationEvent is a notification that is new, or was read.
type NotificationEvent struct {
	notifications.Notification
	Unread uint32 `json:"unread" doc:"How many notifications are now unread"`
}

// ResyncEvent says that the stream may have missed changes.
type ResyncEvent struct{}

// told lists all events with the type of their data.
func told() []operation.NamedEvent {
	return []operation.NamedEvent{
		{Name: jobStatus, Data: JobStatusEvent{}}, {Name: mergeEnded, Data: MergeEvent{}},
		{Name: matchEnded, Data: MatchEvent{}},
		{Name: walletUpdated, Data: wallet.Wallet{}},
		{Name: topUpStatus, Data: TopUpEvent{}}, {Name: notification, Data: NotificationEvent{}},
		{Name: resync, Data: ResyncEvent{}},
	}
}
