// Package schedule computes when scheduled runs start: cron expressions of five fields in a time
// zone (decisions 33 and 65). It reads no clock. Time zones are the machine's, or the binary's if
// it has none. Therefore one node computes a start, and that is replicated.
package schedule

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // where the machine has no time zones

	"github.com/adhocore/gronx"
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of what a customer writes, in bytes.
const (
	MaxExpression = 128
	MaxZone       = 64
)

// maxSkipped is the most starts that a doubled hour swallows, one per minute.
const maxSkipped = 3 * 60

// Schedule is a cron expression in a time zone. It is safe for concurrent use.
type Schedule struct {
	expression string
	zone       *time.Location
}

// item is one part of a field: *, a number or a name, or a range, and a step.
const item = `(?:\*|(?:[0-9]{1,2}|[A-Za-z]{3})(?:-(?:[0-9]{1,2}|[A-Za-z]{3}))?)(?:/[0-9]{1,3})?`

var field = regexp.MustCompile(`^` + item + `(?:,` + item + `)*$`)

// Parse parses an expression of five fields: minute, hour, day of the month, month, day of the
// week. Time zones have the names of the IANA database; "" is UTC. An expression without any start
// is refused. Faults: schema_validation_failed, at schedule or scheduleTimezone.
func Parse(expression, zone string) (Schedule, error) {
	s := Schedule{}
	var err error
	if s.zone, err = readZone(zone); err != nil {
		return s, err
	}
	fields := strings.Fields(expression)
	s.expression = strings.Join(fields, " ")
	if len(expression) > MaxExpression || len(fields) != 5 {
		return s, bad("must be a cron expression of five fields, of at most %d characters",
			MaxExpression)
	}
	for _, f := range fields {
		if !field.MatchString(f) {
			return s, bad("%q: a field has numbers, names, ranges, lists and steps", f)
		}
	}
	for i, f := range fields {
		if step := longestStep(f); step > largest(i) {
			return s, bad("%q: a step of %d is longer than the field", f, step)
		}
	}
	if !gronx.New().IsValid(s.expression) {
		return s, bad("is no cron expression: minute, hour, day of the month, month and day of " +
			"the week")
	}
	if _, ok := s.Next(time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return s, bad("never comes")
	}
	return s, nil
}

// largest returns the largest value of a field, by its place.
func largest(place int) int { return []int{59, 23, 31, 12, 7}[place] }

// longestStep returns the longest step of a field's items; 0: none.
func longestStep(field string) (longest int) {
	for one := range strings.SplitSeq(field, ",") {
		if _, text, stepped := strings.Cut(one, "/"); stepped {
			step, _ := strconv.Atoi(text) // digits only
			longest = max(longest, step)
		}
	}
	return longest
}

func bad(format string, args ...any) error {
	return fault.Invalid(fault.SchemaValidation, "schedule", format, args...)
}

func readZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	// Other files that machines keep beside the zones begin with small letters, like right/UTC.
	if err != nil || len(name) > MaxZone || name == "Local" || name == "Factory" ||
		name[0] < 'A' || name[0] > 'Z' {
		return nil, fault.Invalid(fault.SchemaValidation, "scheduleTimezone",
			"is no time zone of the IANA database, like Europe/Paris")
	}
	return zone, nil
}

// CheckZone refuses anything but the name of a time zone. Faults: schema_validation_failed, at
// scheduleTimezone.
func CheckZone(name string) error {
	_, err := readZone(name)
	return err
}

// Next returns the first start after a time; false: there is none. A time of day that the zone
// skips starts at the minute after the gap. One that occurs twice starts the first time.
func (s Schedule) Next(after time.Time) (next time.Time, ok bool) {
	wall := wallOf(after, s.zone)
	for range maxSkipped {
		var err error
		if wall, err = gronx.NextTickAfter(s.expression, wall, false); err != nil {
			return time.Time{}, false
		}
		if next = instantOf(wall, s.zone); next.After(after) {
			return next, true
		}
	}
	return time.Time{}, false
}

// wallOf returns what a zone's clocks show, as a UTC time: UTC skips and repeats no time of day.
func wallOf(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(),
		t.Nanosecond(), time.UTC)
}

// instantOf returns when a zone's clocks first show a time, or the end of the gap that skips it.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	// The zone's offsets around that time are those of a day before and after.
	var first time.Time
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(near).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if wallOf(at, zone).Equal(wall) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		return first.UTC()
	}
	// The time is skipped. Before the gap's offset change it would be as long after the gap's
	// beginning as it lies within the gap.
	_, before := wall.Add(-24 * time.Hour).In(zone).Zone()
	at := wall.Add(-time.Duration(before) * time.Second).In(zone)
	begin, _ := at.ZoneBounds()
	return begin.UTC()
}

// spread is the number of minutes over which groups' starts are spread: 00:00 to 06:00.
const spread = 6 * 60

// OfGroup returns the expression for a group's start type: "" if the group does not start on its
// own. The minute is derived from the group's id.
func OfGroup(startType string, group ids.ID) string {
	minute := xxh3.Hash(group[:]) % spread
	switch startType {
	case "DAILY":
		return fmt.Sprintf("%d %d * * *", minute%60, minute/60)
	case "WEEKLY":
		return fmt.Sprintf("%d %d * * 1", minute%60, minute/60)
	}
	return ""
}

// Due says what is due of a schedule.
type Due struct {
	Next int64 // Unix milliseconds of the next start, 0: never
	// Start is the start that is due, in Unix milliseconds; 0: none.
	Start int64
	// Missed is the number of missed starts, counted up to MaxMissed.
	Missed uint32
}

// MaxMissed is the most missed starts that are counted.
const MaxMissed = 100

// missedAfter is the age from which a missed start is not made up for.
const missedAfter = time.Hour

// Look returns what is due at now, for a schedule whose next start was next. Of the missed starts,
// the newest is due if it is less than an hour old.
func (s Schedule) Look(next, now time.Time) Due {
	var due Due
	if at := next; !at.After(now) {
		old := now.Add(-missedAfter)
		for ok := true; ok && !at.After(old); at, ok = s.Next(at) {
			if due.Missed++; due.Missed == MaxMissed {
				at, ok = s.Next(old)
				if !ok {
					return due
				}
				break
			}
		}
		for ok := true; ok && !at.After(now); at, ok = s.Next(at) {
			if due.Start != 0 {
				due.Missed = min(due.Missed+1, MaxMissed)
			}
			due.Start = at.UnixMilli()
		}
	}
	if at, ok := s.Next(now); ok {
		due.Next = at.UnixMilli()
	}
	return due
}

// Zones reads schedules that were checked when they were written, and caches their time zones. It
// is not safe for concurrent use.
type Zones struct{ known map[string]*time.Location }

// Of returns the schedule of a group with a start type, or of a scraper with an expression. Its
// error says that this binary cannot read it.
func (z *Zones) Of(target ids.ID, group bool, cron, zone string) (Schedule, error) {
	s := Schedule{expression: cron}
	if group {
		s.expression = OfGroup(cron, target)
	} else {
		s.expression = strings.Join(strings.Fields(cron), " ")
	}
	if s.zone = z.known[zone]; s.zone != nil {
		return s, nil
	}
	var err error
	if s.zone, err = readZone(zone); err != nil {
		return s, err
	}
	if z.known == nil {
		z.known = map[string]*time.Location{}
	}
	z.known[zone] = s.zone // there are only some hundreds
	return s, nil
}
