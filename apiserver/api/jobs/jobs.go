// Package jobs owns the reads of runs (specification 4.3 and 6): their records, the errors of their
// links, and the live stream of one run.
package jobs

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Scraper jobs"

// Resource has the operations on launched runs and their dependencies.
type Resource struct {
	Client  client.Client
	Store   rowstore.Reads
	History *client.History
	Clock   clock.Clock
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.history(),
		r.all(),
		r.errors(),
		r.stream(),
		r.streamOfScraper(),
		r.release(),
	}
}

// Job is the specification's job record.
type Job struct {
	ID                 ids.ID            `json:"id"`
	ScraperID          ids.ID            `json:"scraperId"`
	GroupID            ids.ID            `json:"groupId"`
	State              model.JobState    `json:"state"`
	Queued             api.Time          `json:"queued"`
	Started            api.Time          `json:"started" doc:"When the first page was dispatched; until then, when the run was queued"`
	Finished           api.Time          `json:"finished" doc:"Null while anything of the run is still under way"`
	SuccessLinks       uint32            `json:"successLinks" doc:"Links whose pages were all read"`
	ErrorLinks         uint32            `json:"errorLinks" doc:"Links that ended with an error"`
	TotalLinks         uint32            `json:"totalLinks" doc:"Links of the run"`
	ItemsQuantity      uint64            `json:"itemsQuantity" doc:"Rows stored"`
	TotalRequests      uint64            `json:"totalRequests" doc:"Pages finished, delivered or errored"`
	DeliveredPages     uint64            `json:"deliveredPages"`
	Duration           *int64            `json:"duration" doc:"Milliseconds from started to finished"`
	ErrorMessage       *string           `json:"errorMessage" scraped:"-" doc:"Why the run failed, or was not compared with earlier runs of its group with quarantine"`
	StopReason         *model.StopReason `json:"stopReason" doc:"STOPPED_BY_CUSTOMER, WALLET_INSUFFICIENT_BALANCE or MAX_CHARGE_REACHED"`
	LaunchedByCustomer bool              `json:"launchedByCustomer" doc:"False if the owner of a shared group launched it"`
	MaxChargeMicros    *int64            `json:"maxChargeMicros" doc:"The run's cost cap, in micros, millionths of a euro; null for people with whom the group is shared"`
	ChargedMicros      *int64            `json:"chargedMicros" doc:"Charged so far, in micros, millionths of a euro; null for people with whom the group is shared"`
	IgnoresRobots      bool              `json:"ignoresRobots" doc:"The run ignored robots.txt"`
	QuarantineReason   *string           `json:"quarantineReason" scraped:"-" doc:"Why the run is held back, as text: until it is released, it does not count as the last run. Null: it is not held back."`
}

// NewJob converts a run's record to the API's form, for its owner or a reader. Only the owner sees
// what it costs.
func NewJob(v *client.View, j *client.Job, reader string) Job {
	record := Job{ID: j.ID, ScraperID: j.Scraper, GroupID: j.Group, State: j.State,
		Queued:  api.Time(j.Queued),
		Started: api.Time(j.Started), Finished: api.Time(j.Finished), SuccessLinks: j.Success,
		ErrorLinks: j.Errors,
		TotalLinks: j.Links, ItemsQuantity: j.Items, TotalRequests: j.Pages,
		DeliveredPages: j.Delivered,
		Duration:       duration(j), ErrorMessage: given(j.Message), StopReason: given(j.Reason),
		LaunchedByCustomer: j.Customer == reader, ChargedMicros: charged(j, reader),
		IgnoresRobots: j.IgnoresRobots}
	if j.Customer == reader {
		record.MaxChargeMicros = j.MaxCharge
	}
	if held := v.HeldRun(j.ID); held != nil {
		record.QuarantineReason = &held.Why
	}
	return record
}

// charged returns what a run was charged, for its owner; nil for others.
func charged(j *client.Job, reader string) *int64 {
	if j.Customer != reader {
		return nil
	}
	micros := j.Charged
	return &micros
}

// duration returns the run's duration in milliseconds; nil until it is closed.
func duration(j *client.Job) *int64 {
	if !j.Closed {
		return nil
	}
	millis := j.Finished - j.Started
	return &millis
}

func given[T ~string](text T) *T {
	if text == "" {
		return nil
	}
	return &text
}
