// Package runs owns the operations that start and stop runs (specification 4.1, decisions 8 and 9).
// How runs come to be is package launch's; what became of one is in package jobs.
package runs

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/trial"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rules/ecb"
)

const group = "Runs"

// Resource is the operations that start and stop runs, and what they use.
type Resource struct {
	Launcher *launch.Launcher
	Trials   *trial.Trials
	Client   Client
	Clock    clock.Clock
	// ExchangeRates are what currency rules convert by.
	ExchangeRates ecb.Rates
	// KeepsBodies says that there is a place for bodies that are to be kept.
	KeepsBodies bool
}

// Client is what stops a run, and sees it stop.
type Client interface {
	client.Proposer
	client.Reader
}

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.start(),
		r.stop(),
		r.sample(),
		r.estimate(),
		r.startGroup(),
		r.stopGroup(),
		r.estimateGroup(),
		r.startList(),
		r.reExtract(),
	}
}

// LaunchedRun is a run that was launched.
type LaunchedRun struct {
	JobID     ids.ID         `json:"jobId"`
	ScraperID ids.ID         `json:"scraperId"`
	Status    model.JobState `json:"status" doc:"PENDING; RUNNING of kept bodies"`
	QueuedAt  api.Time       `json:"queuedAt"`
}
