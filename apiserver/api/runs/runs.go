// Package runs owns the operations that start and stop runs (specification 4.1, decisions 8 and 9).
// Package launch creates runs; package jobs reports on them.
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

// Resource has the operations that start and stop runs, and their dependencies.
type Resource struct {
	Launcher *launch.Launcher
	Trials   *trial.Trials
	Client   Client
	Clock    clock.Clock
	// ExchangeRates are the rates of currency rules.
	ExchangeRates ecb.Rates
	// KeepsBodies says that there is a store for bodies.
	KeepsBodies bool
}

// Client stops a run and watches it stop.
type Client interface {
	client.Proposer
	client.Reader
}

// Operations lists all operations, in the order of the specification.
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
	Status    model.JobState `json:"status" doc:"PENDING; RUNNING for a run from kept bodies"`
	QueuedAt  api.Time       `json:"queuedAt"`
}
