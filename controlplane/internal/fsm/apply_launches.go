package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

func launchRuns(tx *state.Tx, p command.LaunchRunsPayload) (command.LaunchedRuns, error) {
	answer := command.LaunchedRuns{Unnamed: p.Unnamed}
	if group := tx.Group(p.Group); group == nil || group.Customer != p.Customer {
		return answer, fault.Invalid(fault.NotFound, "id", "no group has this id")
	}
	if len(p.Runs) > command.MaxRunsAtOnce || len(p.Skipped) > command.MaxSkips {
		return answer, fault.New(fault.InvalidRequest, "at most %d runs and %d skipped scrapers",
			command.MaxRunsAtOnce, command.MaxSkips)
	}
	if tx.Customer(p.Customer).Blocked() {
		return answer, fault.New(fault.CustomerBlocked, "an admin has blocked this customer: it "+
			"launches no runs")
	}
	answer.Skipped = append(answer.Skipped, p.Skipped...)
	for i := range p.Runs {
		run := &p.Runs[i]
		job, reason := launchMember(tx, &p, run)
		switch {
		case reason == 0:
			answer.Jobs = append(answer.Jobs, job)
		case len(answer.Skipped) < command.MaxSkips:
			answer.Skipped = append(answer.Skipped, command.SkippedScraper{Scraper: run.Scraper,
				Reason: reason})
		default:
			answer.Unnamed++
		}
	}
	return answer, nil
}

// launchMember makes one run of a group's launch, or says why it is none.
func launchMember(tx *state.Tx, p *command.LaunchRunsPayload, run *command.GroupRun) (
	job command.GroupJob, reason state.SkipReason) {
	scraper := tx.Scraper(run.Scraper)
	if scraper == nil || scraper.Group != p.Group || scraper.ListRun || run.Links == 0 {
		return job, state.SkipNoSource
	}
	launch := command.LaunchRunPayload{Job: run.Job, Entry: run.Entry, Customer: p.Customer,
		Scraper: run.Scraper, List: run.List, Links: run.Links, Tiers: run.Tiers,
		MaxCharge: run.MaxCharge, IgnoresRobots: run.IgnoresRobots, Charge: run.Charge,
		Daily: run.Daily}
	if n := int(run.Engine); n > 0 && n <= len(p.Engines) {
		launch.Search = &p.Engines[n-1]
	}
	launched, err := launchRun(tx, launch)
	if err != nil {
		return job, command.SkipFor(err)
	}
	return command.GroupJob{Job: run.Job, Scraper: run.Scraper, State: launched.State,
		Queued: launched.Queued}, 0
}

func stopGroup(tx *state.Tx, p command.StopGroupPayload) (command.LaunchedRuns, error) {
	answer := command.LaunchedRuns{}
	group := tx.Group(p.Group)
	if group == nil || group.Customer != p.Customer {
		return answer, fault.Invalid(fault.NotFound, "id", "no group has this id")
	}
	for _, job := range openInGroup(tx, group) {
		scraper := tx.Scraper(job.Scraper)
		if job.State.Final() || scraper == nil || scraper.Group != group.ID {
			continue // of a scraper that was moved elsewhere, whose group stops it
		}
		endRun(tx, job, model.StoppedByCustomer)
		answer.Jobs = append(answer.Jobs, command.GroupJob{Job: job.ID, Scraper: job.Scraper,
			State: model.Stopped, Queued: job.Queued})
	}
	return answer, nil
}
