// Package client is the control plane as the other roles see it, and the only package of it that
// they import. It reads replicated state, proposes commands, reports receipts and holds leases. It
// works by direct calls in one process and by the same interface across machines.
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
	// Following is a follower of one customer, Taken a batch of its changes, Touch one thing that
	// changed.
	Following = state.Following
	Taken     = state.Taken
	Touch     = state.Touch
)

// What kind of thing was touched.
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
	// TakeMails and RecordMails come before and after the sending of e-mails.
	TakeMails   = command.TakeMailsPayload
	RecordMails = command.RecordMailsPayload
	MailLater   = command.MailLater
	// PutThreshold sets below which balance a wallet is low.
	PutThreshold = command.PutThresholdPayload
	// DeleteScraper keeps the runs, and keeps the rows unless the query is WithData.
	DeleteScraper = command.DeleteScraperPayload
	// ForgetRemovals ends removals.
	ForgetRemovals = command.ForgetRemovalsPayload
	RemovalRef     = command.RemovalRef
	// DeleteRun deletes the rows of a run, and NoteRowsRemoved ends that.
	DeleteRun       = command.DeleteRunPayload
	NoteRowsRemoved = command.NoteRowsRemovedPayload
	TargetRun       = command.DeletedRun
	// ReleaseRun releases a run that is held back.
	ReleaseRun = command.ReleaseRunPayload
	// TellChanges records what a run changed since the one before it.
	TellChanges = command.TellChangesPayload
	// DeleteGroup deletes a group; DeleteMembers and ForgetGroup finish the deletion.
	DeleteGroup   = command.DeleteGroupPayload
	DeleteMembers = command.DeleteMembersPayload
	ForgetGroup   = command.ForgetGroupPayload
	PutSchema     = command.PutSchemaPayload
	PutCategory   = command.PutCategoryPayload
	// DeleteCategory keeps rows: they do not refer to categories.
	DeleteCategory = command.DeleteCategoryPayload
	ShareGroup     = command.ShareGroupPayload
	RevokeShare    = command.RevokeSharePayload
	// RemoveCustomer removes a customer, and EraseCustomer continues the removal.
	RemoveCustomer = command.RemoveCustomerPayload
	EraseCustomer  = command.EraseCustomerPayload
	DeleteSchema   = command.DeleteSchemaPayload
	Deletion       = command.Deletion
	// PreviewDelete precedes every deletion that has a preview.
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
	// BlockCustomer blocks a customer's credentials; its open runs go on.
	BlockCustomer   = command.BlockCustomerPayload
	UnblockCustomer = command.UnblockCustomerPayload
	// PutSettings changes operator settings.
	PutSettings = command.PutSettingsPayload
	Settings    = state.Settings
	// SeedPlans adds the plans that a server was started with.
	SeedPlans  = command.SeedPlansPayload
	Plan       = state.Plan
	PlanLimit  = state.PlanLimit
	RateFigure = state.RateFigure
	// NoteSignIn records a sign-in, failed or not, in the audit trail.
	NoteSignIn    = command.NoteSignInPayload
	CreateAccount = command.CreateAccountPayload
	OpenSession   = command.OpenSessionPayload
	EndSessions   = command.EndSessionsPayload
	SessionTouch  = command.SessionTouch
	TouchSessions = command.TouchSessionsPayload

	SetPassword    = command.SetPasswordPayload
	DisableAccount = command.DisableAccountPayload
	RemoveAccount  = command.RemoveAccountPayload
	// PutLetter has a letter sent, and HandLetter makes one for an admin to hand over. UseLetter
	// sets a password with it, or makes the account.
	PutLetter  = command.PutLetterPayload
	HandLetter = command.HandLetterPayload
	UseLetter  = command.UseLetterPayload
	// AddPasskey and RemovePasskey manage passkeys. UsePasskey signs in with one.
	AddPasskey    = command.AddPasskeyPayload
	RemovePasskey = command.RemovePasskeyPayload
	UsePasskey    = command.UsePasskeyPayload
	// IssueTicket and TakeTicket authorize the opening of a stream.
	IssueTicket = command.IssueTicketPayload
	TakeTicket  = command.TakeTicketPayload
	// IssueCode begins a grant. RedeemCode and RefreshGrant renew its tokens, EndGrant ends it.
	IssueCode    = command.IssueCodePayload
	RedeemCode   = command.RedeemCodePayload
	RefreshGrant = command.RefreshGrantPayload
	EndGrant     = command.EndGrantPayload
)

// The states of a top-up after its payment.
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
	WithData         = command.WithData // in their queries
)

// LowBalanceMicros is the low-balance threshold of a new wallet unless an operator has set one.
const LowBalanceMicros = state.LowBalanceMicros

// Bounds of the days that the history keeps an ended run: no fewer than its rows are kept.
const (
	MinHistoryDays = state.MinHistoryDays
	MaxHistoryDays = state.MaxHistoryDays
)

// LetterMillis is how long the link of a letter is valid, in milliseconds.
const LetterMillis = state.LetterMillis

// SessionMillis is the longest life of a session, in milliseconds.
const SessionMillis = state.SessionMillis

// Call is the idempotency of an API call. The claim of its key and the command's effect are one
// step. If the key already has a result, the command changes nothing and Replayed becomes true. The
// first result (or fault) is then returned.
type Call struct {
	Customer  string
	Operation string
	Key       string // the client's key, 1 to 255 bytes
	Request   uint64 // hash of the request: another request under the same key is refused
	Replayed  bool   // out
	// Body is the hash of the streamed body; 0: not complete yet, or none. FirstBody is the hash of
	// the first call, when this one is Replayed.
	Body, FirstBody uint64
	// Ticket is set by a successful ClaimCall. Later commands under this Call complete or release
	// the claim.
	Ticket ids.ID
	// AnswerOnly says that the command may return the key's first result, and is refused as
	// unavailable if none is kept. It changes nothing. Set it only if View.Answered.
	AnswerOnly bool
}

// Patience is how long an API call waits for a control plane without a leader: ten elections. A
// retry with the same idempotency key gets the outcome of the first call.
const Patience = 30 * time.Second

// Proposer changes the state. Do and Begin need only this part of a Client.
type Proposer interface {
	// Propose proposes a command and waits until this node has applied it. Do and Begin use it and
	// give the result its type. call may be nil. Faults of the command are *fault.Error. If the
	// outcome is not known within ctx or Patience, the code is unavailable, and the command may or
	// may not have been applied. All retries use one command id.
	Propose(ctx context.Context, payload command.Payload, call *Call) (any, error)
}

// Reader reads the state.
type Reader interface {
	// View returns this node's copy of the state, which may lag behind the leader's.
	View() *View
	// Fresh returns a view that holds everything applied anywhere before the call (a linearizable
	// read).
	Fresh(ctx context.Context) (*View, error)
}

// Follower follows customers.
type Follower interface {
	// Follow reports the changes of a customer in this node's copy of the state. It starts now, or
	// after the index behind. The caller must call End on the result.
	Follow(customer string, behind uint64) *Following
}

// Client is safe for concurrent use.
type Client interface {
	Proposer
	Reader
	Follower
	// Settle applies a batch of receipts in the order in which they were read. It then hands the
	// markers read after them to the leader. Repeating it changes nothing.
	Settle(ctx context.Context, receipts []model.Receipt, markers []model.Marker) error
	// Heartbeat renews a fetcher's leases and returns the shards to hold.
	Heartbeat(ctx context.Context, beat Heartbeat) (Leases, error)
	// SafeTime returns the leader's safe time for removing things by age. It is unavailable while
	// clocks disagree.
	SafeTime(ctx context.Context) (time.Time, error)
	// Status describes the cluster for people.
	Status(ctx context.Context) (Status, error)
	// Nodes describes every registered node, by name, as the leader sees it. Without a leader it
	// returns, within seconds, what this node knows alone. Then no node's Suffrage is RaftLeader.
	Nodes(ctx context.Context) ([]NodeStatus, error)
}

// Heartbeat is sent by each fetcher every third of a lease.
type Heartbeat struct {
	Node string
	Boot ids.ID // this start of the process
	// Holding are the shards whose task partition the fetcher has open, with the epochs of their
	// leases.
	Holding []ShardEpoch
	// Leaving: the process stops. It takes no more shards and releases those that it holds.
	Leaving bool
	// Short: the node's disk is below its floor. It keeps its shards, and gets no more while
	// another fetcher can take them.
	Short  bool   `cbor:",omitempty"`
	Open   int    // tasks held open
	Unread int64  // task records of its shards that it has not read, some seconds ago
	Pages  uint64 // passed on since the process started
}

// ShardEpoch names one holding of a shard.
type ShardEpoch struct {
	Shard uint16
	Epoch uint64
	// Newest, in Hold, is the number of the newest dispatch sent to the shard. A new owner has no
	// task with a higher number yet.
	Newest uint64 `cbor:",omitempty"`
}

// Leases answers a heartbeat.
type Leases struct {
	// For is how long every shard in Hold may be worked on, counted from before the heartbeat was
	// sent.
	For time.Duration
	// Hold are the shards to hold from now on. Open a shard that is not in Holding; reopen one
	// whose epoch changed.
	Hold []ShardEpoch
	// Release are held shards to hand over: begin no page, finish and publish those that have
	// begun, then leave the shard out of Holding.
	Release []ShardEpoch
	// Soon: a shard will soon be free for this node. It should ask again before a third of a lease
	// has passed.
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
	// Pages are the pages settled since the process started, delivered or errored. PageErrors are
	// those that errored.
	Pages      uint64
	PageErrors uint64
}

// NodeState says what is known of a node's life.
type NodeState string

// The states of a node. Without gossip, only fetchers are known to be alive.
const (
	NodeAlive    NodeState = "ALIVE"
	NodeDraining NodeState = "DRAINING" // told to drain, or stopping, and not finished
	NodeDrained  NodeState = "DRAINED"  // told to drain: owns no shard, holds nothing open
	NodeLeft     NodeState = "LEFT"     // stopped cleanly
	NodeFailed   NodeState = "FAILED"   // not heard for longer than a lease
	NodeUnknown  NodeState = "UNKNOWN"
)

// Suffrage is a node's part in Raft.
type Suffrage string

// The suffrages; "" for a node that is not a server of Raft.
const (
	RaftLeader   Suffrage = "LEADER"
	RaftVoter    Suffrage = "VOTER"
	RaftNonvoter Suffrage = "NONVOTER"
)

// NodeStatus is a node as the leader sees it. Figures from heartbeats are 0 if the node sent none
// to this leader.
type NodeStatus struct {
	Name     string
	Roles    []string
	Version  string
	Capacity uint32        // weight of its fetcher, 0: none
	Tiers    model.TierSet // supported by its fetcher
	Boot     ids.ID        // its newest start
	Draining bool          // told to drain, and the order still stands
	State    NodeState
	Shards   int // owned
	Moving   int // owned shards that are being handed over
	Open     int // tasks held open
	// Unread are the task records in the log that it has not read, some seconds ago.
	Unread int64
	// PagesPerSecond is the rate at which it passes pages on, over about the last heartbeats.
	PagesPerSecond float64
	HeardMillis    int64 // since its newest heartbeat, -1: none
	// GoneMillis is about how long it has been gone, as gossip told the leader, also before it
	// led; nil: it is there.
	GoneMillis *int64 `cbor:",omitempty"`
	Suffrage   Suffrage
	// Raft entries that it had not applied when asked; nil: unknown
	Lag *uint64
}

// Do proposes a command by Propose and returns its result with the type that the command declares.
func Do[R any](ctx context.Context, c Proposer, payload command.Of[R], call *Call) (R, error) {
	result, err := c.Propose(ctx, payload, call)
	if err != nil {
		var none R
		return none, err
	}
	return command.ResultOf[command.Of[R]](result)
}

// Begin claims a call's key for an effect that a command of type P will complete. replay is the
// earlier result of that command if the call was made before, else nil. call must not be nil.
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
