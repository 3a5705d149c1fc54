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
	// maxAuditWaiting bounds the audit entries that wait for the archive because of customers.
	// Beyond it no keys are made.
	maxAuditWaiting = 100_000
	maxActionBytes  = 64
)

// audit writes the command's entry in the audit trail, if it has one.
func audit(tx *state.Tx, env *command.Envelope, payload command.Payload) {
	action := actionOf(payload)
	if env.Actor != nil {
		action = env.Actor.Operation
	}
	tx.Audit(action)
}

// actionOf names a command without an API call: move-schedules for MoveSchedulesPayload. Golden
// files contain the names, so that they never change.
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
