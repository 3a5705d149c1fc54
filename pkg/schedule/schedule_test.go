package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// starts returns the first n starts after a time.
func starts(t *testing.T, expression, zone, after string, n int) (all []string) {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	for now := at(t, after); len(all) < n; {
		next, ok := s.Next(now)
		if !ok || !next.After(now) {
			t.Fatalf("%s after %v: %v", expression, now, next)
		}
		all, now = append(all, next.Format("01-02T15:04")), next
	}
	return all
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ expression, zone, after, want string }{
		{"0 9 * * *", "", "2026-01-01T08:59:59Z", "01-01T09:00 01-02T09:00"},
		{"*/20 9-10 * * 1-5", "", "2026-01-02T09:30:00Z",
			"01-02T09:40 01-02T10:00 01-02T10:20 01-02T10:40 01-05T09:00"},
		{"0 0 1,15 * 1", "", "2026-01-01T00:00:00Z", "01-05T00:00 01-12T00:00 01-15T00:00"},
		{"0 0 29 feb *", "", "2026-01-01T00:00:00Z", "02-29T00:00 02-29T00:00"},
		{"0 0 * * sun", "", "2026-01-01T00:00:00Z", "01-04T00:00"},
		{"0 0 * * 7", "", "2026-01-01T00:00:00Z", "01-04T00:00"},
		{"0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "01-01T03:30 01-02T03:30"},
		// 02:30 is skipped on 2026-03-29, and occurs twice on 2026-10-25.
		{"30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z",
			"03-28T01:30 03-29T01:00 03-30T00:30"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "10-25T00:30 10-26T01:30"},
		{"*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			"03-29T01:00 03-30T00:00 03-30T00:30"},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:10:00Z", // the doubled hour passes once
			"10-25T00:30 10-25T02:00 10-25T02:30"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", // midnight is skipped
			"11-04T03:00 11-05T02:00"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", // a gap of half an hour
			"10-03T15:30 10-04T15:15"},
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", // a day that never was
			"12-29T22:00 12-30T10:00 12-30T22:00"},
	} {
		want := strings.Fields(c.want)
		if got := starts(t, c.expression, c.zone, c.after, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s in %q: %q, want %q", c.expression, c.zone, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, expression := range []string{"", "* * * *", "* * * * * *", "@daily", "60 * * * *",
		"* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "x * * * *", "0 0 31 2 *",
		"0 0 L * *", "0 0 15W * *", "* * * * 1#2", "*/0 * * * *", "*/60 * * * *",
		"0 1-5/24 * * *", "0,*/99 * * * *", "0 0 * * */8", "5-1 * * * *", "? * * * *",
		"0 0 * * *" + strings.Repeat(" ", MaxExpression)} {
		if _, err := Parse(expression, ""); err == nil {
			t.Errorf("%q is taken", expression)
		}
	}
	for _, zone := range []string{"Local", "Nowhere/Land", "../etc/passwd", "right/UTC",
		"posixrules", "Factory",
		strings.Repeat("x", MaxZone+1)} {
		if _, err := Parse("0 0 * * *", zone); err == nil || CheckZone(zone) == nil {
			t.Errorf("zone %q is taken", zone)
		}
	}
}

func TestLook(t *testing.T) {
	s, err := Parse("0 * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	minutely, err := Parse("* * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s         Schedule
		next, now string
		start     string
		missed    uint32
	}{
		{s, "2026-01-01T10:00:00Z", "2026-01-01T09:59:59Z", "", 0},
		{s, "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", 0},
		{s, "2026-01-01T10:00:00Z", "2026-01-01T10:59:59Z", "2026-01-01T10:00:00Z", 0},
		{s, "2026-01-01T10:00:00Z", "2026-01-01T12:30:00Z", "2026-01-01T12:00:00Z", 2},
		{s, "2026-01-01T10:00:00Z", "2027-01-01T12:30:00Z", "2027-01-01T12:00:00Z", MaxMissed},
		{minutely, "2026-01-01T10:00:00Z", "2026-01-01T10:10:00Z", "2026-01-01T10:10:00Z", 10},
	} {
		due := c.s.Look(at(t, c.next), at(t, c.now))
		start := ""
		if due.Start != 0 {
			start = time.UnixMilli(due.Start).UTC().Format(time.RFC3339)
		}
		next, _ := c.s.Next(at(t, c.now))
		if start != c.start || due.Missed != c.missed || due.Next != next.UnixMilli() {
			t.Errorf("at %s: %+v, %s", c.now, due, start)
		}
	}
	daily, err := Parse("0 3 * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	if due := daily.Look(at(t, "2026-01-01T03:00:00Z"), at(t, "2026-01-03T12:00:00Z")); due.Start !=
		0 || due.Missed != 3 {
		t.Errorf("%+v", due)
	}
}

func TestGroupsAreSpread(t *testing.T) {
	hours := map[string]int{}
	source := ids.Random{Now: func() time.Time { return time.Unix(1, 0) }}
	for range 600 {
		expression := OfGroup("WEEKLY", source.New())
		if _, err := Parse(expression, "Europe/Paris"); err != nil {
			t.Fatal(err)
		}
		hours[strings.Fields(expression)[1]]++
	}
	if len(hours) != 6 || hours["0"] < 50 || hours["5"] < 50 {
		t.Errorf("%v", hours)
	}
	if OfGroup("MANUAL", ids.ID{}) != "" || OfGroup("NONE", ids.ID{}) != "" ||
		strings.HasSuffix(OfGroup("DAILY", ids.ID{}), "1") {
		t.Error("the start types")
	}
}
