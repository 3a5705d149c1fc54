package fsm

import (
	"reflect"
	"strings"
	"unicode"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

const maxActionBytes = 64

// checkTrail refuses a command by anybody but an admin that would add to a full audit trail.
func checkTrail(tx *state.Tx, env *command.Envelope, payload command.Payload) error {
	byAdmin := env.Actor != nil && env.Actor.Admin
	if byAdmin || !tells(payload) || !tx.AuditFull() {
		return nil
	}
	return fault.New(fault.Unavailable, "this works again once the row store takes the audit trail")
}

// tells reports whether the audit trail tells of a command, whoever is behind it. Left out is what
// the trail's bound must not stop: revocations, sign-outs, and what uses up a letter or a code. One
// record can cause only one of these.
func tells(payload command.Payload) bool {
	switch p := payload.(type) {
	case command.MintKeyPayload, command.ShareGroupPayload, command.CreateAccountPayload,
		command.SetPasswordPayload, command.AddPasskeyPayload, command.PutLetterPayload,
		command.OpenSessionPayload, command.UsePasskeyPayload, command.IssueCodePayload:
		return true
	case command.NoteSignInPayload:
		return !p.Failed
	}
	return false
}

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
