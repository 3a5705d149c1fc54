package api

import (
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
)

// Launching is the caller of an operation, by its id, as one who asks for a run.
func Launching(from *operation.Caller, operation string) *launch.Caller {
	return &launch.Caller{Principal: from.Principal, View: from.View, Call: from.Call,
		Operation: operation}
}

// Trying is the caller of an operation, by its id, as one who waits for a trial: until the client
// hangs up.
func Trying(from *operation.Caller, id string) *trial.Caller {
	return &trial.Caller{Caller: *Launching(from, id), Waits: func() error {
		if from.Gone() {
			return operation.ErrGone
		}
		return nil
	}}
}

// Tried tells the operation's caller what became of its trial. Another call's is none of its runs.
func Tried(from *operation.Caller, by *trial.Caller) {
	if from.Reason = by.Reason; !by.Joined {
		from.Job = by.Job
	}
}
