package fsm

import (
	"reflect"
	"strings"
	"unicode"

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
func audit(tx *state.Tx, env *command.Envelope, payload command.Payload) {
	action := actionOf(payload)
	if env.Actor != nil {
		action = env.Actor.Operation
	}
	tx.Audit(action)
}

// actionOf names a command that nobody called for: move-schedules for MoveSchedulesPayload. The
// names stand in golden files, so that they stay what they are.
func actionOf(payload command.Payload) string {
	var action strings.Builder
	for i, c := range strings.TrimSuffix(reflect.TypeOf(payload).Name(), "Payload") {
		if unicode.IsUpper(c) && i > 0 {
			action.WriteByte('-')
		}
		action.WriteRune(unicode.ToLower(c))
	}
	return action.String()
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
