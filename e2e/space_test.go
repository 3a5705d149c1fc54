package e2e

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/shortdisk"
	"shoal.dev/shoal/testkit/synthweb"
)

const (
	// spaceFloor is --free-mb, in bytes.
	spaceFloor = 64 << 20
	spaceHosts = 20
	spacePages = 60 // per host
)

// TestRunsWaitForSpace makes the disk fall below its floor during a run, and then kills the
// process. The run stops, launches are refused with a named reason, and the next process waits as
// well. Once there is room the run continues on its own, and ends exact.
func TestRunsWaitForSpace(t *testing.T) {
	t.Parallel()
	web := newWeb(t, synthweb.Config{Hosts: spaceHosts, PagesPerHost: spacePages,
		PageBytes: []int{2500}})
	args := []string{"--no-rate-limits", "--host-rate", "4", "--max-host-rate", "4",
		"--free-mb", "64"}
	s := &service{single: newSingle(t, args, web)}
	s.Service = &suite.Service{T: t, Product: s.single, Web: web, Args: args, Fetchers: 1}
	file := filepath.Join(t.TempDir(), "free")
	s.env = []string{shortdisk.File + "=" + file}
	left := func(bytes uint64) {
		t.Helper()
		if err := shortdisk.Set(file, bytes); err != nil {
			t.Fatal(err)
		}
	}
	left(2 * spaceFloor)
	s.start()
	s.Fill(s.Client, suite.Plenty)
	o := suite.ProductOrder(s.Client, slices.Collect(web.URLs(spaceHosts*spacePages)))
	run := o.Launch(t)
	s.untilPages(run, 1)
	left(spaceFloor - 1)
	stood := s.standsStill(run)
	other := suite.ProductOrder(s.Client, slices.Collect(web.URLs(1)))
	query := suite.Must(other.Query(t.Context()))(t)
	var refused *api.Problem
	if _, err := s.RunList(t.Context(), query, other.Body()); !errors.As(err, &refused) ||
		refused.Status != 503 || refused.Code != string(fault.OutOfSpace) {
		t.Errorf("a launch: %v", err)
	}
	s.kill()
	s.start()
	o.Who, other.Who = s.Client, s.Client
	if again := s.standsStill(run); again < stood {
		t.Errorf("%d pages, after %d before the kill", again, stood)
	}
	left(spaceFloor + spaceFloor/8)
	reported := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
	sum := suite.Check(t, s.Expected(o), s.WithRecords(reported))
	t.Logf("it stood still at %d pages, and ended with %v", stood, sum)
}

// untilPages waits until a run has that many pages.
func (s *service) untilPages(run suite.Launched, pages int64) {
	s.T.Helper()
	for ctx := suite.Within(s.T, suite.Patience); ; {
		job := suite.Must(s.Job(ctx, run))(s.T)
		if job.TotalRequests >= pages {
			return
		}
		select {
		case <-ctx.Done():
			s.T.Fatalf("%d pages are waited for in vain: %+v", pages, job)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// standsStill waits until a run has brought no page for 5 s, and returns its number of pages.
func (s *service) standsStill(run suite.Launched) (pages int64) {
	s.T.Helper()
	const still = 5 * time.Second
	since := time.Now()
	for ctx := suite.Within(s.T, suite.Patience); time.Since(since) < still; {
		job := suite.Must(s.Job(ctx, run))(s.T)
		if now := job.TotalRequests; now != pages {
			pages, since = now, time.Now()
		}
		if pages == spaceHosts*spacePages {
			s.T.Fatal("the run ended, though there is no room")
		}
		select {
		case <-ctx.Done():
			s.T.Fatal("the run goes on, though there is no room")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return pages
}
