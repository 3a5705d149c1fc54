// Package command owns the replicated commands: the numbered, append-only list, their payloads and
// their encoding. What a command does is the state machine's (fsm). Each payload declares its
// command once: number, proposer, result. It holds everything random or new that its effect needs,
// put there by the proposer; the only time is the leader's stamp in the envelope.
//
// # Versions of the cluster
//
// A command does the same on every node, or the nodes' states part for ever. So what a release adds
// waits until every member can apply it. The state has the active version, 1 for what came before
// there were versions. The leader raises it (ActivateVersion) once every server and every
// registered node says that it can apply the next.
//
//   - A new command has its version in its Declaration. It is refused until then, as unavailable.
//   - A new member of a payload has the tag since:"N". It is left out until then, so its zero value
//     has to do. Where that will not do, the payload says which version it needs (Needing).
//   - A new member of a record has the tag, too; only commands and members of its version may set
//     it.
//   - What a known command does in another way asks tx.ClusterVersion.
//
// Tests hold all payloads and records against the lists of version 1 (testdata/version-1).
package command

import (
	"fmt"
	"reflect"
)

// Number names a kind of command in the log. Numbers are never reused or reordered.
type Number uint16

// Declaration is what is fixed of a command, beside the type of its result (Of).
type Declaration struct {
	Number Number
	// By says who may propose the command. There is no default.
	By Proposer
	// Kept results are stored for 15 minutes: a caller that proposes the same id again hears what
	// the first one did.
	Kept bool
	// Since is the version of the cluster that has the command; 0 and 1: all have it.
	Since uint32
}

// Proposer names the nodes from which the leader takes a command.
type Proposer string

// The proposers. APIServer, Billing and Ingest are the roles of that name.
const (
	Leader    Proposer = "leader" // the leader's own steps: no node sends it
	Itself    Proposer = "itself" // each node, of itself
	APIServer Proposer = "apiserver"
	Billing   Proposer = "billing"
	Ingest    Proposer = "ingest"
	Worker    Proposer = "worker" // nodes that do background work, of the kinds of their roles
)

// Payload is a command without its envelope.
type Payload interface {
	Declaration() Declaration
}

// Needing is a payload that would do another thing if members of a later version were left out. It
// is refused by clusters of a version before the one that it needs.
type Needing interface{ Needs() uint32 }

// Since is the first cluster version that takes a payload.
func Since(payload Payload) uint32 {
	since := payload.Declaration().Since
	if p, ok := payload.(Needing); ok {
		since = max(since, p.Needs())
	}
	return since
}

// Of is a payload whose command has the result R. The state machine's function and the caller both
// take their type from here, so the compiler holds them together.
type Of[R any] interface {
	Payload
	yields(R)
}

// None is the result of commands that have none.
type None struct{}

// ResultOf is what a command of the payload P gave, as its result's type. It fails on a value of
// another type: the replay of an idempotency key that another command has completed.
func ResultOf[P Of[R], R any](value any) (R, error) {
	result, ok := value.(R)
	if !ok {
		return result, fmt.Errorf("command: %v answered %T", reflect.TypeFor[P](), value)
	}
	return result, nil
}
