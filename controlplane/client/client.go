// Package client is the control plane as the other roles see it: the only package of it that they
// import. It reads replicated state, proposes commands, reports receipts and holds leases; in one
// process by direct calls, across machines by the same interface.
package client

import (
	"context"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// The replicated records, and a snapshot of them. Records are shared: never change one.
type (
	View         = state.View
	Cluster      = state.Cluster
	Customer     = state.Customer
	Profile      = state.Profile
	Info         = state.Info
	Notice       = state.Notice
	Inbox        = state.Inbox
	Preference   = state.Preference
	Mail         = state.Mail
	Letter       = state.Letter
	Passkey      = state.Passkey
	Key          = state.Key
	Account      = state.Account
	Session      = state.Session
	Grant        = state.Grant
	GrantCode    = state.GrantCode
	Hash         = state.Hash
	Group        = state.Group
	Scraper      = state.Scraper
	Schema       = state.Schema
	Preview      = state.Preview
	Category     = state.Category
	Share        = state.Share
	Recipe       = state.Recipe
	Job          = state.Job
	Wallet       = state.Wallet
	TopUp        = state.TopUp
	Reversal     = state.Reversal
	Entry        = state.Entry
	Line         = state.Line
	PriceTable   = state.PriceTable
	Claim        = state.Claim
	Node         = state.Node
	Shard        = state.Shard
	Undone       = state.Undone
	Removal      = state.Removal
	DeletedRun   = state.DeletedRun
	HeldRun      = state.HeldRun
	Feedback     = state.Feedback
	Steps        = state.Steps
	Alerts       = state.Alerts
	RunChanges   = state.RunChanges
	DeletedGroup = state.DeletedGroup
	Changes      = state.Changes
	// Following is one follower of a customer, Taken what it has taken, Touch a thing that was
	// changed.
	Following = state.Following
	Taken     = state.Taken
	Touch     = state.Touch
)

// What a touched thing is.
const (
	TouchedJob    = state.TouchedJob
	TouchedWallet = state.TouchedWallet
	TouchedTopUp  = state.TouchedTopUp
	TouchedNotice = state.TouchedNotice
)

// Payload is a command that may be proposed.
type Payload = command.Payload

// The members of a group that PutGroup may leave as they are.
const (
	GroupName       = command.GroupName
	GroupDataTable  = command.GroupDataTable
	GroupStartType  = command.GroupStartType
	GroupMatching   = command.GroupMatching
	GroupRetention  = command.GroupRetention
	GroupZone       = command.GroupZone
	GroupQuarantine = command.GroupQuarantine
	GroupAlertsOn   = command.GroupAlertsOn
	GroupAlertsKey  = command.GroupAlertsKey
)

// The commands that roles propose. Each one's comment names its faults.
type (
	OpenCustomer   = command.OpenCustomerPayload
	SignUp         = command.SignUpPayload
	RenameCustomer = command.RenameCustomerPayload
	ChangeInfo     = command.ChangeInfoPayload
	GiveFeedback   = command.GiveFeedbackPayload
	ReadNotices    = command.ReadNoticesPayload
	PreferNotices  = command.PreferNoticesPayload
	MintKey        = command.MintKeyPayload
	RevokeKey      = command.RevokeKeyPayload
	KeyTouch       = command.KeyTouch
	TouchKeys      = command.TouchKeysPayload
	PutGroup       = command.PutGroupPayload
	GroupMembers   = command.GroupMembers
	PutScraper     = command.PutScraperPayload
	PutRetention   = command.PutRetentionPayload
	// TakeMails and RecordMails stand around the sending of e-mails.
	TakeMails   = command.TakeMailsPayload
	RecordMails = command.RecordMailsPayload
	MailLater   = command.MailLater
	// PutThreshold says when a wallet is low.
	PutThreshold = command.PutThresholdPayload
	// DeleteScraper leaves runs, and rows unless the query is WithData.
	DeleteScraper = command.DeleteScraperPayload
	// ForgetRemovals ends removals.
	ForgetRemovals = command.ForgetRemovalsPayload
	RemovalRef     = command.RemovalRef
	// DeleteRun deletes the rows of a run, and NoteRowsRemoved ends that.
	DeleteRun       = command.DeleteRunPayload
	NoteRowsRemoved = command.NoteRowsRemovedPayload
	TargetRun       = command.DeletedRun
	// ReleaseRun ends that a run is held back.
	ReleaseRun = command.ReleaseRunPayload
	// TellChanges tells of a run what changed since the one before it.
	TellChanges = command.TellChangesPayload
	// DeleteGroup deletes a group; DeleteMembers and ForgetGroup end that.
	DeleteGroup   = command.DeleteGroupPayload
	DeleteMembers = command.DeleteMembersPayload
	ForgetGroup   = command.ForgetGroupPayload
	PutSchema     = command.PutSchemaPayload
	PutCategory   = command.PutCategoryPayload
	// DeleteCategory leaves rows: they know of none.
	DeleteCategory = command.DeleteCategoryPayload
	ShareGroup     = command.ShareGroupPayload
	RevokeShare    = command.RevokeSharePayload
	// RemoveCustomer removes a customer, and EraseCustomer goes on with it.
	RemoveCustomer = command.RemoveCustomerPayload
	EraseCustomer  = command.EraseCustomerPayload
	DeleteSchema   = command.DeleteSchemaPayload
	Deletion       = command.Deletion
	// PreviewDelete goes before every deletion that has a preview.
	PreviewDelete = command.PreviewDeletePayload
	ClaimCall     = command.ClaimCallPayload
	RenewClaims   = command.RenewClaimsPayload
	ReleaseClaim  = command.ReleaseClaimPayload
	LaunchRun     = command.LaunchRunPayload
	Launched      = command.Launched
	Trial         = command.Trial
	StopRun       = command.StopRunPayload
	Stopped       = command.Stopped
	AdjustWallet  = command.AdjustWalletPayload
	OpenTopUp     = command.OpenTopUpPayload
	OpenedTopUp   = command.OpenedTopUp
	PayTopUp      = command.PayTopUpPayload
	PaidTopUp     = command.PaidTopUp
	EndTopUp      = command.EndTopUpPayload
	ReverseTopUp  = command.ReverseTopUpPayload
	PutPrices     = command.PutPricesPayload
	SetPrices     = command.SetPricesPayload
	DrainNode     = command.DrainNodePayload
	RegisterNode  = command.RegisterNodePayload
	// BlockCustomer ends what a customer may do; its runs under way go on.
	BlockCustomer   = command.BlockCustomerPayload
	UnblockCustomer = command.UnblockCustomerPayload
	// PutSettings changes what operators have set.
	PutSettings = command.PutSettingsPayload
	Settings    = state.Settings
	// SeedPlans brings the plans that a server was started with.
	SeedPlans  = command.SeedPlansPayload
	Plan       = state.Plan
	PlanLimit  = state.PlanLimit
	RateFigure = state.RateFigure
	// NoteSignIn has the audit trail tell of a sign-in, which failed or did not.
	NoteSignIn    = command.NoteSignInPayload
	CreateAccount = command.CreateAccountPayload
	OpenSession   = command.OpenSessionPayload
	EndSessions   = command.EndSessionsPayload
	SessionTouch  = command.SessionTouch
	TouchSessions = command.TouchSessionsPayload

	SetPassword    = command.SetPasswordPayload
	DisableAccount = command.DisableAccountPayload
	RemoveAccount  = command.RemoveAccountPayload
	// PutLetter has a letter sent, and HandLetter makes one that an admin hands on. UseLetter sets
	// a password by it, or makes the account.
	PutLetter  = command.PutLetterPayload
	HandLetter = command.HandLetterPayload
	UseLetter  = command.UseLetterPayload
	// AddPasskey and its like are the life of a passkey. UsePasskey signs in by it.
	AddPasskey    = command.AddPasskeyPayload
	RemovePasskey = command.RemovePasskeyPayload
	UsePasskey    = command.UsePasskeyPayload
	// IssueTicket and TakeTicket stand around the opening of a stream.
	IssueTicket = command.IssueTicketPayload
	TakeTicket  = command.TakeTicketPayload
	// IssueCode and its like are the life of a grant.
	IssueCode    = command.IssueCodePayload
	RedeemCode   = command.RedeemCodePayload
	RefreshGrant = command.RefreshGrantPayload
	EndGrant     = command.EndGrantPayload
)

// States of a top-up that its paying ends.
const (
	TopUpApplied   = state.TopUpApplied
	TopUpUnmatched = state.TopUpUnmatched
)

// Operations that have a preview.
const (
	OpDeleteSchema   = command.OpDeleteSchema
	OpDeleteScraper  = command.OpDeleteScraper
	OpDeleteRun      = command.OpDeleteRun
	OpDeleteGroup    = command.OpDeleteGroup
	OpDeleteCategory = command.OpDeleteCategory
	OpRemoveCustomer = command.OpRemoveCustomer
	WithData         = command.WithData // of their queries
)

// LowBalanceMicros is the low-balance threshold of a new wallet unless an operator has set one.
const LowBalanceMicros = state.LowBalanceMicros

// Bounds of the days that an ended run stays in the history: no fewer than its rows stay.
const (
	MinHistoryDays = state.MinHistoryDays
	MaxHistoryDays = state.MaxHistoryDays
)

// LetterMillis is how long the link of a letter is good, in milliseconds.
const LetterMillis = state.LetterMillis

// SessionMillis is how long a session lasts at most, in milliseconds.
const SessionMillis = state.SessionMillis

// Call is the idempotency of an API call. Its claim and the command's effect are one step. When the
// key's result is there already the command changes nothing, Replayed becomes true and the first
// result (or fault) comes back.
type Call struct {
	Customer  string
	Operation string
	Key       string // the client's key, 1 to 255 bytes
	Request   uint64 // hash of the request: another one under the same key is refused
	Replayed  bool   // out
	// Body is the hash of the streamed body, once it has come, 0: it has not, or there is none.
	// FirstBody is that of the call that is Replayed.
	Body, FirstBody uint64
	// Ticket is set by a ClaimCall that went through: what is proposed under this Call afterwards
	// completes, or releases, the claim.
	Ticket ids.ID
}

// Patience is how long a caller of the API waits for a control plane that has no leader: ten
// elections. Who comes again with the same idempotency key gets what became of the first call.
const Patience = 30 * time.Second

// Proposer changes the state: it is all that Do and Begin need of a Client.
type Proposer interface {
	// Propose is what Do and Begin go by, before the result has its type. It proposes a command and
	// waits until this node has applied it. call may be nil. Faults of the command are
	// *fault.Error. When the outcome cannot be learnt within ctx, or Patience, the error's code is
	// unavailable, and the command may or may not have been applied. Propose has tried the same
	// command id all along.
	Propose(ctx context.Context, payload command.Payload, call *Call) (any, error)
}

// Reader reads the state.
type Reader interface {
	// View is this node's copy of the state, which may lag behind the leader's.
	View() *View
	// Fresh is a view that holds everything that was applied anywhere before the call (a
	// linearizable read).
	Fresh(ctx context.Context) (*View, error)
}

// Follower follows customers.
type Follower interface {
	// Follow tells what is changed of a customer in this node's copy of the state. It begins now,
	// or behind an index up to which everything is known. The following's End must be called.
	Follow(customer string, behind uint64) *Following
}

// Client is safe for concurrent use.
type Client interface {
	Proposer
	Reader
	Follower
	// Settle applies a batch of receipts, in the order in which they were read. Then it hands the
	// markers that stood behind them to the leader. Repeating it changes nothing.
	Settle(ctx context.Context, receipts []model.Receipt, markers []model.Marker) error
	// Heartbeat renews a fetcher's leases and tells it what to hold.
	Heartbeat(ctx context.Context, beat Heartbeat) (Leases, error)
	// SafeTime is the time by which things may be removed for their age, as the leader is certain
	// of it. While clocks disagree it is unavailable.
	SafeTime(ctx context.Context) (time.Time, error)
	// Status describes the cluster for people.
	Status(ctx context.Context) (Status, error)
	// Nodes describes every registered node, by name, as the leader sees it. While there is no
	// leader it tells within seconds what this node knows by itself: then no node's Suffrage is
	// RaftLeader.
	Nodes(ctx context.Context) ([]NodeStatus, error)
}

// Heartbeat is sent by each fetcher every third of a lease.
type Heartbeat struct {
	Node string
	Boot ids.ID // this start of the process
	// Holding are the shards whose task partition it has open, with the epochs under which it took
	// them.
	Holding []ShardEpoch
	// Leaving: the process stops. It takes nothing more and lets go of what it holds on its own.
	Leaving bool
	// Short: the node's disk has less than its floor. It goes on with what it holds, and takes
	// nothing more as long as another one can.
	Short  bool   `cbor:",omitempty"`
	Open   int    // tasks held open
	Unread int64  // records of its shards' tasks that it has not read, some seconds ago
	Pages  uint64 // passed on since the start of the process
}

// ShardEpoch names a holding of a shard.
type ShardEpoch struct {
	Shard uint16
	Epoch uint64
	// Newest, in Hold, is the number of the newest dispatch sent to the shard. Whoever begins to
	// hold it now has no task with a higher one.
	Newest uint64 `cbor:",omitempty"`
}

// Leases answers a heartbeat.
type Leases struct {
	// For is how long every shard in Hold may be worked on, counted from before the heartbeat was
	// sent.
	For time.Duration
	// Hold are the shards to hold from now on; one not yet in Holding is to be opened, one of
	// another epoch anew.
	Hold []ShardEpoch
	// Release are held shards to be handed over: begin no page, finish those that have begun,
	// publish them, then leave the shard out of Holding.
	Release []ShardEpoch
	// Soon: a shard is about to be free for this node; it should not wait a third of a lease to
	// hear of it.
	Soon bool
}

// Status is what `shoal status` shows.
type Status struct {
	Node     string
	Roles    []string
	Leader   string
	Term     uint64
	Applied  uint64 // Raft index
	Commands uint64 // applied since the process started
	Shards   int
	Owned    int // shards with an owner
	OpenJobs int
	Out      int // units out
	// Pages and PageErrors were settled since the process started: delivered or errored, and those
	// errored.
	Pages      uint64
	PageErrors uint64
}

// NodeState says what is known of a node's life.
type NodeState string

// The states of a node. One that has no fetcher is only known to live where the members of the
// cluster tell so.
const (
	NodeAlive    NodeState = "ALIVE"
	NodeDraining NodeState = "DRAINING" // told to drain, or stopping, and not done with it
	NodeDrained  NodeState = "DRAINED"  // told to drain: owns no shard, holds nothing open
	NodeLeft     NodeState = "LEFT"     // stopped cleanly
	NodeFailed   NodeState = "FAILED"   // not heard for longer than a lease
	NodeUnknown  NodeState = "UNKNOWN"
)

// Suffrage is what a node is in Raft.
type Suffrage string

// The suffrages; "" of a node that Raft does not have.
const (
	RaftLeader   Suffrage = "LEADER"
	RaftVoter    Suffrage = "VOTER"
	RaftNonvoter Suffrage = "NONVOTER"
)

// NodeStatus is a node as the leader sees it. What a fetcher's heartbeats say is 0 of a node that
// sent none to this leader.
type NodeStatus struct {
	Name     string
	Roles    []string
	Version  string
	Capacity uint32        // weight of its fetcher, 0: none
	Tiers    model.TierSet // ways in which its fetcher can fetch
	Boot     ids.ID        // its newest start
	Draining bool          // told to, and not taken back
	State    NodeState
	Shards   int // owned
	Moving   int // of them, those that are being handed over
	Open     int // tasks held open
	// Unread are the tasks in the log that it has not read yet, some seconds ago.
	Unread int64
	// PagesPerSecond is what it passes on, over about the last heartbeats.
	PagesPerSecond float64
	HeardMillis    int64 // since its newest heartbeat, -1: none
	// GoneMillis is for how long it has been gone, as far as this leader saw it; nil: it is there.
	GoneMillis *int64 `cbor:",omitempty"`
	Suffrage   Suffrage
	// Raft entries that it had not applied when it was asked; nil: it did not say
	Lag *uint64
}

// Do proposes a command by Propose. The command's declaration gives the result its type.
func Do[R any](ctx context.Context, c Proposer, payload command.Of[R], call *Call) (R, error) {
	result, err := c.Propose(ctx, payload, call)
	if err != nil {
		var none R
		return none, err
	}
	return command.ResultOf[command.Of[R]](result)
}

// Begin claims a call's key for an effect that a command of the type P is going to complete. replay
// is nil, or what that command answered when the call was made before. call is not nil.
func Begin[P command.Of[R], R any](ctx context.Context, c Proposer, claim ClaimCall,
	call *Call) (replay *R, err error) {
	answer, err := c.Propose(ctx, claim, call)
	if err != nil || !call.Replayed {
		return nil, err
	}
	result, err := command.ResultOf[P](answer)
	if err != nil {
		return nil, err
	}
	return &result, nil
}
