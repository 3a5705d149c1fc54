package leadership

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/controlplane/internal/quorum"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
)

// Proposer changes and reads the replicated state for a leadership. It never forwards commands to
// another leader. An error means that the outcome is not known, because the leadership is over or
// ctx has ended.
type Proposer interface {
	// BeginTerm has a command applied in a term of this node, which also applies everything of
	// earlier terms. It returns the term and the command's index.
	BeginTerm(ctx context.Context) (term, index uint64, err error)
	Propose(ctx context.Context, payload command.Payload) (fsm.Result, error)
	// Settle applies receipts in order, in as many commands as their size requires.
	Settle(ctx context.Context, receipts []model.Receipt) error
	// Confirm fails unless a majority has confirmed since the call that this node leads.
	Confirm(ctx context.Context) error
	// Fresh returns a view of everything that was applied anywhere before the call.
	Fresh(ctx context.Context) (*state.View, error)
}

// Store is the part of the row store that a leadership needs.
type Store interface {
	steps.Store
	Advance(ctx context.Context) error
	AllLists(ctx context.Context) ([]rowstore.ListInfo, error)
	DropList(ctx context.Context, list ids.ID) error
	AllSites(ctx context.Context) ([]rowstore.ListInfo, error)
	StatedSites(ctx context.Context) ([]ids.ID, error)
	DropSite(ctx context.Context, version ids.ID) error
	DropLinkStates(ctx context.Context, site ids.ID) error
	DeleteJob(ctx context.Context, job ids.ID, records bool) error
	PutPast(ctx context.Context, runs []rowstore.PastRun, entries []rowstore.PastEntry) error
	PutAudit(ctx context.Context, entries []rowstore.AuditRecord) error
	AuditHead(ctx context.Context, path rowstore.Path) (uint64, error)
	PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord, error)
	ExpirePast(ctx context.Context, before time.Time) error
	PastHead(ctx context.Context, path rowstore.Path) (uint64, error)
	Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error)
	Holding(ctx context.Context, scope rowstore.Scope, most int) ([]ids.ID, error)
	Free(ctx context.Context) (bytes uint64, known bool, err error)
}

// Config is common to all leaderships of a node. The control plane's own Config documents its
// settings and checks them.
type Config struct {
	Node     *node.Node
	Proposer Proposer
	// Claim marks log and row store as the cluster's, and retries until it succeeds. claimed is
	// false when ctx ended. It fails when they are another cluster's.
	Claim func(ctx context.Context, cluster ids.ID) (claimed bool, err error)

	Boot  ids.ID // this start of the process
	Clock clock.Clock
	IDs   ids.Source
	Log   stream.Log
	Store Store

	// Settings for creating the cluster.
	Shards            uint16
	FreeGrant         int64
	Prices            price.List
	LogName, RowsName string

	Window                int
	HostRate, MaxHostRate float64
	HostOf                func(url string) string
	ShardOf               func(host string) int
	DomainOf              func(url string) uint64

	Lease, EndWithin, FetchDeadline time.Duration
	MarkerEvery                     time.Duration
	RestoreGrace                    time.Duration
	// ArchiveEvery is the pause between archive rounds. The newest ArchiveKeep runs and entries of
	// each customer also stay in the state.
	ArchiveEvery time.Duration
	ArchiveKeep  uint32
	HistoryKept  time.Duration // how long a run stays in the archive after its end
	DigestsEvery time.Duration // between two comparisons of all copies of the state
	Autopilot    quorum.Config
	RowsFloor    *telemetry.Floor // of the row store's disk; nil: it is never short

	// DropBodies removes the kept bodies of runs that a restore undid.
	DropBodies func(ctx context.Context, undone []*state.Undone) error

	Point   func(name string)
	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil
	Tracer  *telemetry.Tracer  // nil: no traces
}

// pace returns the request starts a second that a run may have at one host; 0: no bound.
func (c *Config) pace(view *state.View, job *state.Job) float64 {
	rate := c.HostRate
	if recipe := view.Recipe(job.Scraper, job.Revision); recipe != nil &&
		recipe.Recipe.Politeness.RequestsPerSecond > 0 {
		rate = recipe.Recipe.Politeness.RequestsPerSecond
	}
	if c.MaxHostRate > 0 && (rate == 0 || rate > c.MaxHostRate) {
		return c.MaxHostRate
	}
	return rate
}
