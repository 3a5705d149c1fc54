package fsm

import (
	"fmt"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

const (
	// maxAuditWaiting bounds the entries of the audit trail that wait for the archive, as far as
	// customers make them: beyond it no keys are made.
	maxAuditWaiting = 100_000
	maxActionBytes  = 64
)

// audit writes the entry of the audit trail that a command deserves.
func audit(tx *state.Tx, env *command.Envelope) {
	action := fmt.Sprintf("command %d", env.Number)
	if env.Actor != nil {
		action = env.Actor.Operation
	}
	tx.Audit(action)
}

func dropAudit(tx *state.Tx, p command.DropAuditPayload) (command.None, error) {
	tx.DropAudit(p.Generation, p.From, p.Upto)
	return command.None{}, nil
}

func noteSignIn(tx *state.Tx, p command.NoteSignInPayload) (command.None, error) {
	if p.Failed {
		tx.CountFailure()
		return command.None{}, nil
	}
	if p.Action == "" || len(p.Action) > maxActionBytes {
		return command.None{}, fault.Invalid(fault.InvalidRequest, "action",
			"must have 1 to %d bytes", maxActionBytes)
	}
	tx.AuditEvent(p.Action)
	return command.None{}, nil
}
