package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestCrashesOfStarts kills the process at each point of finding and launching due starts. One is a
// group's, the other a scraper's own schedule. In the end each scraper has one run, and the books
// are right.
func TestCrashesOfStarts(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"leader.before_schedules", "leader.after_schedules",
		"work.launch.before_step:1", "work.launch.before_commit:1", "work.launch.after_commit:1",
		"work.launch.after_step:1", "work.launch.before_step:2", "work.launch.before_commit:2",
		"work.launch.after_commit:2", "work.launch.after_step:2"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			l := newLaunches(t)
			l.bring()
			group, next := l.startLater()
			scrapers := []string{l.putScraper(group, "a", ""), l.putScraper(group, "b", "")}
			scrapers = append(scrapers, l.putScraper(l.putGroup("manual", "MANUAL"), "c",
				fmt.Sprintf("%d %d * * *", next.Minute(), next.Hour())))
			l.Down(t)
			l.late.pass(t, time.Until(next.Add(time.Minute)).Round(time.Second))
			l.dies(crash.At + "=" + point)
			l.bring()
			l.check(scrapers, nil)
		})
	}
}

// TestCrashesOfLaunches kills the process after each command of a launching call: for a scraper, a
// group, and a run's failed links. The call is repeated under its key. In the end each scraper has
// the one run that the answer names, and the books are right.
func TestCrashesOfLaunches(t *testing.T) {
	t.Parallel()
	for _, way := range share(t, []string{"scraper", "group", "requeue"}) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			l := newLaunches(t)
			trace := filepath.Join(t.TempDir(), "points")
			l.bring(crash.Trace + "=" + trace)
			call := l.prepared(way)
			before := countLines(t, trace)
			call()
			after := countLines(t, trace)
			l.Down(t)
			const point = "raft.after_apply"
			if after[point] == before[point] {
				t.Error("the call makes no command")
			}
			for n := before[point] + 1; n <= after[point]; n++ {
				at := fmt.Sprintf("%s:%d", point, n)
				t.Run(at, func(t *testing.T) {
					t.Parallel()
					l := newLaunches(t)
					l.bring(crash.At + "=" + at)
					scrapers, named := l.prepared(way)()
					if len(l.Deaths) == 0 {
						l.awaitDeath()
					}
					l.check(scrapers, named)
				})
			}
		})
	}
}

// launches is a product whose web has both good and failing pages.
type launches struct {
	*oldProduct
	good, bad []string
	past      int // earlier runs, which are not checked
}

func newLaunches(t *testing.T) *launches {
	t.Helper()
	web := newWeb(t, synthweb.Config{Hosts: 40, PagesPerHost: 1, PageBytes: []int{2500},
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 50},
			{Class: synthweb.NotFound, Weight: 50}}})
	l := &launches{oldProduct: openOldProduct(t, web)}
	for address := range web.URLs(40) {
		if fails(t, web, address) {
			l.bad = append(l.bad, address)
		} else {
			l.good = append(l.good, address)
		}
	}
	return l
}

// prepared prepares a way of launching, and returns the call. The call returns the scrapers that it
// launches, and the runs.
func (l *launches) prepared(way string) func() (scrapers, jobs []string) {
	l.T.Helper()
	l.survive("wallet", func(ctx context.Context) error {
		ref, err := l.Whoami(ctx)
		if err != nil {
			return err
		}
		return l.Admin().Again("fill").Adjust(ctx, ref, suite.Plenty)
	})
	group := l.putGroup("g", "MANUAL")
	scrapers := []string{l.putScraper(group, "a", "")}
	var path string
	who := func() suite.Client { return l.Client }
	switch way {
	case "scraper":
		path = "/api/scraper/" + scrapers[0] + "/run"
	case "group":
		scrapers = append(scrapers, l.putScraper(group, "b", ""))
		path = "/api/scraper/group/" + group + "/run"
	case "requeue":
		var run suite.Launched
		l.survive("first run", func(ctx context.Context) error {
			err := l.Again("first").Call(ctx, "POST", "/api/scraper/url-list-run", nil,
				map[string]any{"groupId": group, "name": "list",
					"itemsConfig": synthweb.ProductFields(),
					"urls":        slices.Concat(l.good[:1], l.bad[:2])}, &run)
			if err == nil {
				_, _, err = l.Finished(ctx, run)
			}
			return err
		})
		l.past = 1
		scrapers, who = []string{run.ScraperID}, l.Admin
		path = "/api/admin/jobs/" + run.JobID + "/requeue"
	}
	return func() ([]string, []string) {
		l.T.Helper()
		var answer struct {
			JobID string
			Jobs  []struct{ JobID string }
		}
		l.survive("launch", func(ctx context.Context) error {
			return who().Again("launch").Call(ctx, "POST", path, nil, nil, &answer)
		})
		jobs := []string{answer.JobID}
		if way == "group" {
			jobs = nil
			for _, job := range answer.Jobs {
				jobs = append(jobs, job.JobID)
			}
		}
		return scrapers, jobs
	}
}

func (l *launches) putGroup(name, starts string) string {
	l.T.Helper()
	var made struct{ ID string }
	l.survive("group", func(ctx context.Context) error {
		return l.Again(name).Call(ctx, "PUT", "/api/scraper/group", nil,
			map[string]any{"name": name, "startType": starts}, &made)
	})
	return made.ID
}

// putScraper makes a scraper of one page.
func (l *launches) putScraper(group, name, schedule string) (id string) {
	l.T.Helper()
	l.survive("scraper", func(ctx context.Context) (err error) {
		id, err = l.Again("scraper "+name).PutScraper(ctx, suite.Scraper{GroupRef: group,
			Scraper: model.Scraper{Name: name, Type: model.SingleProduct, Schedule: schedule,
				SourceConfig: model.SourceConfig{URL: l.good[0]},
				ItemsConfig:  synthweb.ProductFields()}})
		return err
	})
	return id
}

// startLater makes a daily group whose next start is so far away that no process makes it before
// its clock is set.
func (l *launches) startLater() (group string, next time.Time) {
	l.T.Helper()
	for n := 0; time.Until(next) < 2*time.Minute; n++ { // each id has a minute of its own
		group = l.putGroup(fmt.Sprintf("daily %d", n), "DAILY")
		next = l.nextStart(group)
	}
	return group, next
}

// nextStart returns when a group starts next.
func (l *launches) nextStart(group string) time.Time {
	l.T.Helper()
	for ctx := suite.Within(l.T, suite.Patience); ; {
		var groups []struct {
			ID        string
			NextStart *time.Time
		}
		if err := l.Call(ctx, "GET", "/api/scraper/group/list", nil, nil, &groups); err != nil {
			l.T.Fatal(err)
		}
		for _, g := range groups {
			if g.ID == group && g.NextStart != nil {
				return g.NextStart.UTC()
			}
		}
		select {
		case <-ctx.Done():
			l.T.Fatalf("it does not start: %+v", groups)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// check waits until each scraper has its run, and requires exactly the named runs.
func (l *launches) check(scrapers, named []string) {
	l.T.Helper()
	var jobs []recount.Job
	for ctx := suite.Within(l.T, suite.Patience); ; {
		l.survive("look", func(ctx context.Context) (err error) {
			jobs, err = l.Jobs(ctx, "")
			return err
		})
		open := func(job recount.Job) bool { return !model.JobState(job.State).Final() }
		if len(jobs) >= l.past+len(scrapers) && !slices.ContainsFunc(jobs, open) {
			break
		}
		select {
		case <-ctx.Done():
			l.T.Fatalf("they do not end: %+v", jobs)
		case <-time.After(50 * time.Millisecond):
		}
	}
	var ran, made []string
	for _, job := range jobs[:len(jobs)-l.past] {
		ran, made = append(ran, job.ScraperID), append(made, job.ID)
	}
	slices.Sort(ran)
	slices.Sort(scrapers)
	slices.Sort(made)
	slices.Sort(named)
	if !slices.Equal(ran, scrapers) || named != nil && !slices.Equal(made, named) {
		l.T.Errorf("runs %v of scrapers %v, want %v of %v", made, ran, named, scrapers)
	}
	suite.CheckWallet(l.T, l.Client)
	runs, differ, err := l.Admin().RecountOfProduct(l.T.Context())
	if err != nil || runs != len(jobs) || differ > 0 {
		l.T.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
	}
}
