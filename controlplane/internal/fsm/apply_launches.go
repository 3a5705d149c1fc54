package fsm

import (
	"bytes"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func launchRuns(tx *state.Tx, p command.LaunchRunsPayload) (command.LaunchedRuns, error) {
	answer := command.LaunchedRuns{Unnamed: p.Unnamed}
	if p.Item != nil {
		return launchItem(tx, p)
	}
	if group := tx.Group(p.Group); group == nil || group.Customer != p.Customer {
		return answer, fault.Invalid(fault.NotFound, "id", "there is no such group")
	}
	if len(p.Runs) > command.MaxRunsAtOnce || len(p.Skipped) > command.MaxSkips {
		return answer, fault.New(fault.InvalidRequest, "at most %d runs and %d skipped scrapers",
			command.MaxRunsAtOnce, command.MaxSkips)
	}
	if tx.Customer(p.Customer).Blocked() {
		return answer, fault.New(fault.CustomerBlocked, "an admin has blocked this customer: it "+
			"launches no runs")
	}
	if tx.IsShort() {
		return answer, errShort()
	}
	launchMembers(tx, &p, &answer)
	return answer, nil
}

// launchMembers makes the runs of a command, which has passed its own checks.
func launchMembers(tx *state.Tx, p *command.LaunchRunsPayload, answer *command.LaunchedRuns) {
	answer.Skipped = append(answer.Skipped, p.Skipped...)
	for i := range p.Runs {
		run := &p.Runs[i]
		job, reason := launchMember(tx, p, run)
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
}

// launchMember makes one run of a group's launch, or returns why not.
func launchMember(tx *state.Tx, p *command.LaunchRunsPayload, run *command.GroupRun) (
	job command.GroupJob, reason state.SkipReason) {
	scraper := tx.Scraper(run.Scraper)
	if scraper == nil || !p.Group.IsZero() && scraper.Group != p.Group || scraper.ListRun ||
		run.Links == 0 {
		return job, state.SkipNoSource
	}
	if p.Item != nil && p.Group.IsZero() && !tx.StartsItself(scraper) {
		return job, state.SkipPaused
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

// launchItem makes the runs of an item of background work, and advances the item. The cursor
// ensures that each part is made once.
func launchItem(tx *state.Tx, p command.LaunchRunsPayload) (command.LaunchedRuns, error) {
	answer := command.LaunchedRuns{Unnamed: p.Unnamed}
	item := tx.WorkItem(p.Item.ID)
	if item == nil || item.Customer != p.Customer || !bytes.Equal(item.Cursor, p.Item.From) ||
		len(p.Runs) > 0 && tx.IsShort() ||
		len(p.Runs) > command.MaxRunsAtOnce || len(p.Skipped) > command.MaxSkips ||
		len(tx.OpenJobsOfCustomer(p.Customer))+len(p.Runs) > maxOpenRuns { // due starts wait
		return answer, nil
	}
	if tx.Customer(p.Customer).Blocked() {
		for i := range p.Runs {
			answer.Skipped = append(answer.Skipped, command.SkippedScraper{
				Scraper: p.Runs[i].Scraper, Reason: state.SkipBlocked})
		}
		answer.Skipped = append(answer.Skipped, p.Skipped...)
	} else {
		launchMembers(tx, &p, &answer)
	}
	countStarts(tx, &p, &answer)
	if p.Item.Done {
		tx.RemoveWork(item)
		return answer, nil
	}
	moved := *item
	moved.Cursor, moved.Advanced = p.Item.Upto, tx.Now
	tx.PutWork(&moved)
	return answer, nil
}

// countStarts records the outcome of starts in their schedules: the group's, or each scraper's own.
func countStarts(tx *state.Tx, p *command.LaunchRunsPayload, answer *command.LaunchedRuns) {
	note := func(target ids.ID, launched, skipped uint32, reason state.SkipReason, done bool) {
		known := tx.Schedule(target)
		if known == nil || known.Pending != p.Item.ID {
			return
		}
		noted := *known
		noted.Count(launched, skipped, reason)
		if done {
			noted.Pending = ids.ID{}
			notifyRefused(tx, &noted)
		}
		tx.PutSchedule(&noted)
	}
	if !p.Group.IsZero() {
		reason := state.SkipReason(0)
		for _, s := range answer.Skipped {
			if s.Reason.Outranks(reason) {
				reason = s.Reason
			}
		}
		note(p.Group, uint32(len(answer.Jobs)), uint32(len(answer.Skipped))+answer.Unnamed, reason,
			p.Item.Done)
		return
	}
	for _, job := range answer.Jobs {
		note(job.Scraper, 1, 0, 0, true)
	}
	for _, s := range answer.Skipped {
		note(s.Scraper, 0, 1, s.Reason, true)
	}
}

func stopGroup(tx *state.Tx, p command.StopGroupPayload) (command.LaunchedRuns, error) {
	answer := command.LaunchedRuns{}
	group := tx.Group(p.Group)
	if group == nil || group.Customer != p.Customer {
		return answer, fault.Invalid(fault.NotFound, "id", "there is no such group")
	}
	stopStart(tx, group.ID)
	for _, job := range openInGroup(tx, group) {
		scraper := tx.Scraper(job.Scraper)
		if job.State.Final() || scraper == nil || scraper.Group != group.ID {
			continue // the scraper was moved, and its new group stops the run
		}
		endRun(tx, job, model.StoppedByCustomer)
		dropUnmerged(tx, job)
		answer.Jobs = append(answer.Jobs, command.GroupJob{Job: job.ID, Scraper: job.Scraper,
			State: model.Stopped, Queued: job.Queued})
	}
	return answer, nil
}
