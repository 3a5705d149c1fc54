package api

import (
	"cmp"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
)

// Launching converts the caller of an operation, given by its id, to the caller of a launch.
func Launching(from *operation.Caller, operation string) *launch.Caller {
	return &launch.Caller{Principal: from.Principal, View: from.View, Call: from.Call,
		Operation: operation}
}

// Trying converts the caller of an operation, given by its id, to the caller of a trial. It waits
// until the client hangs up.
func Trying(from *operation.Caller, id string) *trial.Caller {
	return &trial.Caller{Caller: *Launching(from, id), Waits: func() error {
		if from.Gone() {
			return operation.ErrGone
		}
		return nil
	}}
}

// Tried passes the outcome of a trial to the caller. A trial that it only joined is not its run.
func Tried(from *operation.Caller, by *trial.Caller) {
	from.Reason, from.Origin = by.Reason, cmp.Or(by.Origin, from.Origin)
	if !by.Joined {
		from.Job = by.Job
	}
}
