// Package command owns the replicated commands: the numbered, append-only list, their payloads and their encoding. What
// a command does is the state machine's (fsm). A payload holds everything random or new that its effect needs, put there
// by the proposer; the only time is the leader's stamp in the envelope.
//
// # Versions of the cluster
//
// A command does the same on every node, or the nodes' states part for ever. So what a release adds waits until every
// member can apply it. The state has the active version, 1 for what came before there were versions; the leader raises it
// (ActivateVersion) once every server and every registered node says that it can apply the next.
//
//   - A new command has its version in Since. It is refused until then, as unavailable.
//   - A new member of a payload has the tag since:"N". It is left out until then, so its zero value has to do.
//   - A new member of a record has the tag, too; only commands and members of its version may set it.
//   - What a known command does in another way asks tx.ClusterVersion.
//
// Tests hold all payloads and records against the lists of version 1 (testdata/version-1).
package command

// Number names a kind of command in the log. Numbers are never reused or reordered.
type Number uint16

// The commands.
const (
	CreateCluster Number = 1
	RegisterNode  Number = 2
	AssignShards  Number = 3
	Tick          Number = 4
	RemoveNode    Number = 5
	DrainNode     Number = 6
	// ActivateVersion raises the cluster's version.
	ActivateVersion Number = 7
	OpenCustomer    Number = 10
	MintKey         Number = 11
	RevokeKey       Number = 12
	TouchKeys       Number = 13
	PutGroup        Number = 20
	PutScraper      Number = 21
	ClaimCall       Number = 30
	RenewClaims     Number = 31
	ReleaseClaim    Number = 32
	LaunchRun       Number = 40
	StopRun         Number = 41
	ExtendWindow    Number = 42
	Settle          Number = 43
	Redispatch      Number = 44
	CloseRun        Number = 45
	ForgetUndone    Number = 46
	AdjustWallet    Number = 50
	PutPrices       Number = 51
	PutSchema       Number = 60
	DeleteSchema    Number = 61
	PreviewDelete   Number = 62
)

// Payload is a command without its envelope.
type Payload interface {
	// Number is the payload's place in the list.
	Number() Number
}
