package runs

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rules"
)

// ReExtractInput names the run whose bodies are read again, and the recipe for it.
type ReExtractInput struct {
	JobID ids.ID `json:"jobId" required:"true" doc:"An ended run of the scraper whose bodies were kept"`
	// A null member means the scraper's own.
	Type             *model.ScraperType       `json:"type" enum:"SINGLE_PRODUCT,MULTIPLE_PRODUCTS,APPLICATION_LD_JSON,AI_CONF" doc:"Used in place of the scraper's type; null: the scraper's"`
	ItemsConfig      *[]model.Field           `json:"itemsConfig" min:"1" max:"500" doc:"Used in place of the scraper's own; null: the scraper's"`
	PostProcessRules *[]model.PostProcessRule `json:"postProcessRules" max:"100" doc:"Used in place of the scraper's own; null: the scraper's"`
	Schema           *model.SchemaRef         `json:"schema" doc:"For AI_CONF: used in place of the scraper's schema; null: the scraper's"`
}

type reExtractRequest struct {
	ID   ids.ID         `path:"id"`
	Body ReExtractInput `body:"json"`
}

// reExtract is POST /api/scraper/{id}/re-extract.
func (r Resource) reExtract() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_re_extract", Routes: operation.Routes("POST /api/scraper/{id}/re-extract"),
		Group:   group,
		Summary: "Extracts an earlier run again, from its kept bodies",
		Description: "A new run reads the pages of the run jobId again from their kept bodies " +
			"(config.keepBodyDays). It uses the current scraper, or what the call names in its " +
			"place. The scraper does not change. No site is asked and nothing is charged. The " +
			"run appears in the history like any other. Its rows appear once it is complete; " +
			"if it is stopped, it leaves none. A page whose body is no longer kept ends with " +
			"the error body_gone. A page that had no rows keeps its error, since it was not " +
			"paid for. Currencies are converted at the rates that applied when the page was " +
			"fetched. No language model is asked.",
		Access: auth.Write, Agents: operation.Adds, Feature: plans.ManualRun, Rate: limits.Run,
		Idempotency: operation.Optional, Invalid: fault.SchemaValidation,
		Errors: []fault.Code{fault.ScraperNotFound, fault.JobNotFound, fault.BodyNotKept,
			fault.SchemaValidation, fault.SchemaGone, fault.TypeNotRunnable,
			fault.ScraperAlreadyRunning, fault.IngestCapacity, fault.IngestCapacityGlobal,
			fault.OutOfSpace},
	}, func(ctx context.Context, from *operation.Caller,
		in *reExtractRequest) (LaunchedRun, error) {
		begin, err := r.read(ctx, from, in)
		if err != nil && !from.OnlyAnswers() {
			return LaunchedRun{}, err
		}
		launched, err := client.Do(ctx, r.Client, begin, from.Call)
		if err != nil {
			return LaunchedRun{}, err
		}
		from.Job = launched.Job
		return newRun(&launched), nil
	})
}

// read makes the command that begins the run.
func (r Resource) read(ctx context.Context, from *operation.Caller,
	in *reExtractRequest) (begin client.BeginReExtract, err error) {
	if faults := r.check(ctx, &in.Body); len(faults) > 0 {
		return begin, faults
	}
	scraper, err := ownership.Scraper(from.View, from.Customer, in.ID, "id")
	if err != nil {
		return begin, err
	}
	if !r.KeepsBodies {
		return begin, fault.New(fault.BodyNotKept, "the operator of the service keeps no bodies")
	}
	job, err := ownership.Job(ctx, r.Launcher.History, from.View, from.Customer, in.Body.JobID,
		"jobId")
	switch {
	case err != nil:
		return begin, err
	case scraper.Spec.Type == model.File:
		return begin, fault.Invalid(fault.TypeNotRunnable, "id", "the scraper's rows are of files")
	case from.View.DeletedRun(job.ID) != nil:
		return begin, fault.Invalid(fault.JobNotFound, "jobId", "the run's rows were deleted")
	case job.Scraper != scraper.ID || job.Unlisted():
		return begin, fault.Invalid(fault.JobNotFound, "jobId", "the scraper has no such run")
	case !job.Closed:
		return begin, fault.Invalid(fault.ScraperAlreadyRunning, "jobId", "the run has not ended")
	}
	recipe, err := r.recipe(ctx, from, scraper, &in.Body)
	if err != nil {
		return begin, err
	}
	return client.BeginReExtract{Job: r.Launcher.IDs.New(), Customer: from.Customer,
		Scraper: scraper.ID, From: job.ID, Links: job.Links, Recipe: recipe}, nil
}

// check validates a body independently of the scraper.
func (r Resource) check(ctx context.Context, in *ReExtractInput) (faults fault.List) {
	if in.Type != nil && in.ItemsConfig != nil {
		faults = extract.Validate(model.Recipe{Type: *in.Type, Fields: *in.ItemsConfig})
	}
	if in.PostProcessRules != nil {
		faults = append(faults, rules.Check(ctx, *in.PostProcessRules, r.ExchangeRates)...)
	}
	return faults
}

// recipe is the recipe that reads the bodies.
func (r Resource) recipe(ctx context.Context, from *operation.Caller, scraper *client.Scraper,
	in *ReExtractInput) (recipe model.Recipe, err error) {
	spec := scraper.Spec
	if in.Type != nil {
		spec.Type = *in.Type
	}
	if in.ItemsConfig != nil {
		spec.ItemsConfig = *in.ItemsConfig
	}
	if in.PostProcessRules != nil {
		spec.PostProcessRules = *in.PostProcessRules
	}
	if in.Schema != nil {
		spec.Schema = in.Schema
	}
	if spec.Type != model.AIConf {
		spec.Schema = nil
	}
	recipe, known := from.View.RecipeOf(from.Customer, &spec, scraper.Tag)
	if !known {
		return recipe, fault.Invalid(fault.SchemaGone, "schema.id", "there is no such schema")
	}
	check := extract.Validate
	if in.ItemsConfig != nil {
		check = extract.CheckNew
	}
	faults := append(check(recipe),
		rules.Check(ctx, spec.PostProcessRules, r.ExchangeRates)...)
	if len(faults) > 0 {
		return recipe, faults
	}
	if endpoint, _ := model.EndpointOf(recipe.Endpoint); endpoint.Restricted {
		if err := auth.Restricted.Check(&from.Principal); err != nil {
			return recipe, err
		}
	}
	return recipe, nil
}
