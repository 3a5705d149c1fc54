package api

import (
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/schedule"
)

// never is a time too far away to be a start.
const never = 253_370_764_800_000 // the year 9999

// NextStart is when a scraper next starts automatically, by its own schedule or with its group. It
// is null if the scraper is paused or only started by hand, and for scrapers without a start
// address: uploads and list runs.
func NextStart(v *client.View, s *client.Scraper) Time {
	group := v.Group(s.Group)
	if group == nil || group.StartType == "NONE" || s.Spec.Type == model.File || s.ListRun {
		return 0
	}
	if s.Spec.Schedule == "" {
		return NextGroupStart(v, group)
	}
	return nextOf(v.Schedule(s.ID), s.UpdatedAt)
}

// NextGroupStart is when a group next starts automatically.
func NextGroupStart(v *client.View, g *client.Group) Time {
	return nextOf(v.Schedule(g.ID), g.UpdatedAt)
}

// nextOf is the next start of a schedule. Before the leader has computed one, it is the first start
// after the change that set the schedule. changed is Unix milliseconds.
func nextOf(s *client.Schedule, changed int64) Time {
	switch {
	case s == nil || s.Next >= never:
		return 0
	case s.Next != 0:
		return Time(s.Next)
	}
	var zones schedule.Zones
	parsed, err := zones.Of(s.Target, s.Group, s.Cron, s.Zone)
	if err != nil {
		return 0 // a binary with more time zones accepted it
	}
	next, ok := parsed.Next(time.UnixMilli(changed))
	if !ok {
		return 0
	}
	return Time(next.UnixMilli())
}

// Starts tells how a scraper or a group starts automatically, and how its newest starts ended.
type Starts struct {
	ScraperID        *ids.ID `json:"scraperId" doc:"Null for a group"`
	GroupID          ids.ID  `json:"groupId"`
	StartType        string  `json:"startType" enum:"MANUAL,DAILY,WEEKLY,NONE" doc:"Start type of the group"`
	Schedule         string  `json:"schedule" doc:"The scraper's own cron expression, which takes precedence; empty: it starts with its group"`
	ScheduleTimezone string  `json:"scheduleTimezone" doc:"IANA time zone; empty: UTC"`
	NextStart        Time    `json:"nextStart" doc:"Null if it does not start automatically"`
	Starts           []Start `json:"starts" doc:"The newest starts, newest first, at most 5"`
}

// Start is the outcome of one start.
type Start struct {
	At       Time    `json:"at" doc:"When it was due; for missed starts, when the first was due"`
	Outcome  string  `json:"outcome" enum:"STARTING,LAUNCHED,SKIPPED,MISSED,NOTHING" doc:"STARTING: it is being launched. LAUNCHED: at least one scraper was launched. SKIPPED: all were skipped. MISSED: the service was down or far behind. NOTHING: there was no scraper to launch, or the start was stopped first"`
	Launched uint32  `json:"launched" doc:"Scrapers that were launched"`
	Skipped  uint32  `json:"skipped" doc:"Scrapers that were skipped"`
	Missed   uint32  `json:"missed" doc:"Missed starts; at most 100 are counted"`
	Reason   *string `json:"reason" doc:"Why scrapers were skipped: a skip reason of a group's run, CUSTOMER_BLOCKED, FEATURE_NOT_IN_PLAN, PAUSED, or STILL_STARTING (the previous start was still being launched). Of several reasons, it is the one that somebody must fix"`
}

// StartsOf tells how a scraper starts: by its own schedule, or with its group.
func StartsOf(v *client.View, s *client.Scraper) Starts {
	answer := Starts{ScraperID: &s.ID, GroupID: s.Group, Schedule: s.Spec.Schedule,
		ScheduleTimezone: s.Spec.ScheduleTimezone, NextStart: NextStart(v, s)}
	target := s.ID
	if group := v.Group(s.Group); group != nil {
		answer.StartType = group.StartType
		if s.Spec.Schedule == "" {
			target, answer.ScheduleTimezone = group.ID, group.Zone
		}
	}
	answer.Starts = startsOf(v, v.Schedule(target))
	return answer
}

// StartsOfGroup tells how a group starts.
func StartsOfGroup(v *client.View, g *client.Group) Starts {
	return Starts{GroupID: g.ID, StartType: g.StartType, ScheduleTimezone: g.Zone,
		NextStart: NextGroupStart(v, g), Starts: startsOf(v, v.Schedule(g.ID))}
}

func startsOf(v *client.View, s *client.Schedule) []Start {
	starts := []Start{}
	if s == nil {
		return starts
	}
	made := s.Launching()
	for i := len(s.Starts) - 1; i >= 0; i-- {
		known := s.Starts[i]
		start := Start{At: Time(known.At), Outcome: "NOTHING", Launched: known.Launched,
			Skipped: known.Skipped, Missed: known.Missed}
		item := v.WorkItem(s.Pending)
		switch {
		case known.Missed > 0:
			start.Outcome = "MISSED"
		case i == made && item != nil && item.State != client.WorkFailed:
			start.Outcome = "STARTING"
		case known.Launched > 0:
			start.Outcome = "LAUNCHED"
		case known.Skipped > 0:
			start.Outcome = "SKIPPED"
		}
		if known.Reason != 0 {
			reason := known.Reason.String()
			start.Reason = &reason
		}
		starts = append(starts, start)
	}
	return starts
}
