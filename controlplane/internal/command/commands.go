// Package command owns the replicated commands: the numbered, append-only list, their payloads and
// their encoding. The state machine (fsm) implements their effects. Each payload declares its
// command once: number, proposer, result. The proposer puts into it everything random or new that
// the effect needs. The only time is the leader's stamp in the envelope.
//
// # Versions of the cluster
//
// A command must do the same on every node, or the nodes' states diverge for good. So a release's
// additions wait until every member can apply them. The state has the active version; 1 stands for
// everything before versions. The leader raises it (ActivateVersion) once every server and every
// registered node report that they can apply the next.
//
//   - A new command has its version in its Declaration. Until then it is refused as unavailable.
//   - A new member of a payload has the tag since:"N". Until then it is left out, so its zero value
//     must do. If that would be wrong, the payload says which version it needs (Needing).
//   - A new member of a record has the tag, too. Only commands and members of its version may set
//     it.
//   - A known command that changes its effect asks tx.ClusterVersion.
//
// Tests compare all payloads and records with the lists of version 1 (testdata/version-1).
package command

import (
	"fmt"
	"reflect"
)

// Number identifies a kind of command in the log. Numbers are never reused or reordered.
type Number uint16

// Declaration holds the fixed properties of a command, except its result type (Of).
type Declaration struct {
	Number Number
	// By says who may propose the command. There is no default.
	By Proposer
	// Kept results are stored for 15 minutes: if a caller proposes the same id again, it gets the
	// first result.
	Kept bool
	// Since is the first cluster version with the command; 0 and 1: all versions.
	Since uint32
}

// Proposer says which nodes may send a command to the leader.
type Proposer string

// The proposers. APIServer, Billing and Ingest are the roles of the same name.
const (
	Leader    Proposer = "leader" // only the leader: no node sends it
	Itself    Proposer = "itself" // each node, about itself
	APIServer Proposer = "apiserver"
	Billing   Proposer = "billing"
	Ingest    Proposer = "ingest"
	Worker    Proposer = "worker" // nodes that do background work, of their roles' kinds
)

// Payload is a command without its envelope.
type Payload interface {
	Declaration() Declaration
}

// Needing is a payload that would have another effect if members of a later version were left out.
// A cluster below the version it needs refuses it.
type Needing interface{ Needs() uint32 }

// Since returns the first cluster version that accepts a payload.
func Since(payload Payload) uint32 {
	since := payload.Declaration().Since
	if p, ok := payload.(Needing); ok {
		since = max(since, p.Needs())
	}
	return since
}

// Of is a payload whose command has the result R. The state machine's function and the caller both
// take R from here, so the compiler checks that they agree.
type Of[R any] interface {
	Payload
	yields(R)
}

// None is the result of commands that have none.
type None struct{}

// ResultOf returns the result of a command with payload P. It fails if value has another type,
// because another command completed the idempotency key that is replayed.
func ResultOf[P Of[R], R any](value any) (R, error) {
	result, ok := value.(R)
	if !ok {
		return result, fmt.Errorf("command: %v answered %T", reflect.TypeFor[P](), value)
	}
	return result, nil
}
