package e2e

import (
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
)

// TestContactsSurviveKills kills twice in the middle of websites. Each still has one row and one
// charge, and no read counts twice towards the daily limits.
func TestContactsSurviveKills(t *testing.T) {
	t.Parallel()
	config, want := suite.ContactsWeb(60, 150*time.Millisecond)
	web := newWeb(t, config)
	s := newService(t, web, "--host-rate", "20", "--max-host-rate", "20", "--no-rate-limits")
	s.Fill(s.Client, suite.Plenty)
	c := suite.LaunchContacts(t, s.Client, web, want)
	for _, pages := range []int64{15, 40} {
		suite.Begun(t, s.Client, c.Run, pages)
		s.kill()
		s.start()
	}
	reported := suite.Must(s.Report(suite.Within(t, suite.Patience), c.Run))(t)
	c.Check(t, reported)
	c.CheckRequests(t, web, 3) // each life may restart a website
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	reported = s.WithRecords(reported)
	if len(reported.Records) != c.Run.LinksQueued {
		t.Errorf("%d page records of %d websites", len(reported.Records), c.Run.LinksQueued)
	}
}
