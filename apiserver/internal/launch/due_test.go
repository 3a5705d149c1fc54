package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// dueRig is a launcher with an item of background work.
type dueRig struct {
	*rig
	t    *testing.T
	item ids.ID
}

// newDue makes scrapers of a group, and a due start of that group. Two of them do not start with
// it: one has its own schedule, one has no address.
func newDue(t *testing.T, scrapers int) *dueRig {
	t.Helper()
	r := &dueRig{rig: newRig(t), t: t}
	for n := range scrapers - 1 {
		r.add(fmt.Sprint("s", n), "https://shop.test/", "")
	}
	r.add("scheduled", "https://shop.test/", "0 0 * * *")
	r.add("sourceless", "", "")
	r.state.Must(t, client.PutStartType{Customer: "alice", Group: r.group, StartType: "DAILY"})
	r.item = r.state.StartDue(t, r.group)
	return r
}

func (r *dueRig) add(name, url, schedule string) {
	r.state.Must(r.t, client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice",
		Group: r.group, Spec: model.Scraper{Name: name, Type: model.SingleProduct,
			Schedule: schedule, SourceConfig: model.SourceConfig{URL: url}, ItemsConfig: title}})
}

// do takes steps of the item until it ends or rests.
func (r *dueRig) do(kind work.Kind) (end work.End, err error) {
	for {
		outcome, err := kind.Step(r.t.Context(), work.Item{ID: r.item})
		if err != nil || outcome.End != work.Held {
			return outcome.End, err
		}
	}
}

// check expects one run of each scraper that starts with the group, and no other list.
func (r *dueRig) check(scrapers int) {
	r.t.Helper()
	view := r.state.View()
	seen := map[ids.ID]bool{}
	for _, job := range view.OpenJobsOfCustomer("alice") {
		if seen[job.Scraper] {
			r.t.Error("a scraper runs twice")
		}
		seen[job.Scraper] = true
	}
	start := view.Schedule(r.group).Starts[0]
	if len(seen) != scrapers || view.WorkItem(r.item) != nil ||
		start.Launched != uint32(scrapers) || start.Skipped != 1 {
		r.t.Errorf("%d runs of %d, %+v", len(seen), scrapers, start)
	}
}

func TestDueGroup(t *testing.T) {
	const scrapers = 2*dueAtOnce + 3
	r := newDue(t, scrapers)
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	r.check(scrapers)
	r.wantLists(t, scrapers)
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Error("an item that is done:", end, err)
	}
}

// Due starts wait while disks are short, and go on once there is room.
func TestDueGroupWaitsForSpace(t *testing.T) {
	const scrapers = 3
	r := newDue(t, scrapers)
	r.state.Short(t, "row store")
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Rested || err != nil {
		t.Fatal(end, err)
	}
	r.wantLists(t, 0)
	r.state.Short(t, "")
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	r.check(scrapers)
	r.wantLists(t, scrapers)
}

// Two owners work on one item at once. Each run is made once, and every list belongs to a run.
func TestDueGroupOfTwoOwners(t *testing.T) {
	const scrapers = 2*dueAtOnce + 3
	r := newDue(t, scrapers)
	var owners sync.WaitGroup
	for range 2 {
		owners.Go(func() {
			for {
				end, err := r.do(Due(DueConfig{Launcher: r.Launcher}))
				if err != nil {
					t.Error(err)
				}
				if end == work.Ended || err != nil {
					return
				}
			}
		})
	}
	owners.Wait()
	r.check(scrapers)
	r.wantLists(t, scrapers)
}

// passedOver proposes each command twice, like a node that a snapshot carried past the first. It
// returns the result of the second.
type passedOver struct{ Client }

func (p passedOver) Propose(ctx context.Context, payload client.Payload, call *client.Call) (any,
	error) {
	if _, err := p.Client.Propose(ctx, payload, call); err != nil {
		return nil, err
	}
	return p.Client.Propose(ctx, payload, call)
}

// An owner that does not learn its command's result keeps the lists of the runs that it made.
func TestDueGroupOfOnePassedOver(t *testing.T) {
	const scrapers = 2*dueAtOnce + 3
	r := newDue(t, scrapers)
	launcher := *r.Launcher
	launcher.Client = passedOver{launcher.Client}
	for {
		end, err := r.do(Due(DueConfig{Launcher: &launcher}))
		if err != nil {
			t.Fatal(err)
		}
		if end == work.Ended {
			break
		}
	}
	r.check(scrapers)
	r.wantLists(t, scrapers)
}

// archivedBetween is passedOver, and the runs of the first command end and leave the state before
// the second.
type archivedBetween struct {
	passedOver
	r *dueRig
}

func (a archivedBetween) Propose(ctx context.Context, payload client.Payload,
	call *client.Call) (any, error) {
	if _, err := a.Client.Propose(ctx, payload, call); err != nil {
		return nil, err
	}
	for _, job := range a.r.state.View().OpenJobsOfCustomer("alice") {
		a.r.state.Must(a.r.t, client.StopRun{Customer: "alice", Job: job.ID})
		a.r.state.CloseRun(a.r.t, job.ID)
	}
	a.r.state.Archive(a.r.t, a.r.Store.(rowstore.Archive), 0)
	return a.Client.Propose(ctx, payload, call)
}

// An owner keeps the lists of its runs even if these have left the state.
func TestDueGroupOfRunsThatLeftTheState(t *testing.T) {
	const scrapers = 3
	r := newDue(t, scrapers)
	launcher := *r.Launcher
	launcher.Client = archivedBetween{passedOver{launcher.Client}, r}
	for {
		end, err := r.do(Due(DueConfig{Launcher: &launcher}))
		if err != nil {
			t.Fatal(err)
		}
		if end == work.Ended {
			break
		}
	}
	if lists, err := r.Store.AllLists(t.Context()); err != nil || len(lists) != scrapers {
		t.Errorf("%d lists, want %d: %v", len(lists), scrapers, err)
	}
}

// An owner that is killed before or after a command, or loses its result, leaves a state from which
// the next owner goes on.
func TestDueGroupOfTheKilled(t *testing.T) {
	const scrapers = 2*dueAtOnce + 3
	killed := errors.New("killed")
	for _, at := range []string{"work.launch.before_commit", "work.launch.after_commit", "lost"} {
		for nth := 1; nth <= 3; nth++ {
			r := newDue(t, scrapers)
			passed := 0
			kind := Due(DueConfig{Launcher: r.Launcher, Point: func(name string) {
				if at == "lost" && name == "work.launch.before_commit" {
					if passed++; passed == nth {
						r.state.Lose(1)
					}
				} else if name == at {
					if passed++; passed == nth {
						panic(killed)
					}
				}
			}})
			func() {
				defer func() {
					if reason := recover(); reason != nil && reason != killed {
						panic(reason)
					}
				}()
				if _, err := r.do(kind); err == nil && at == "lost" {
					t.Error("nobody heard that the answer was lost")
				}
			}()
			end, err := r.do(Due(DueConfig{Launcher: r.Launcher}))
			if end != work.Ended || err != nil {
				t.Fatalf("%s %d: %v %v", at, nth, end, err)
			}
			r.check(scrapers)
		}
	}
}

// A start that reaches the bound on open runs waits and is not skipped.
func TestDueGroupWaitsForRoom(t *testing.T) {
	r := newDue(t, 3)
	busy := r.fill(client.MaxRunsAtOnce - 1)
	for range 2 {
		if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Rested ||
			err != nil {
			t.Fatal(end, err)
		}
	}
	if n := len(r.state.View().OpenJobsOfCustomer("alice")); n != client.MaxRunsAtOnce {
		t.Fatalf("%d runs", n)
	}
	r.state.Must(t, client.StopGroup{Customer: "alice", Group: busy})
	for _, job := range r.state.View().OpenJobsOfCustomer("alice") {
		if job.Group == busy {
			r.state.CloseRun(t, job.ID)
		}
	}
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	r.check(3)
}

// fill opens this many runs of another group.
func (r *dueRig) fill(runs int) (group ids.ID) {
	group = r.IDs.New()
	r.state.Must(r.t, client.PutGroup{Create: true, ID: group, Customer: "alice", Name: "busy",
		DataTable: "busy", StartType: "MANUAL"})
	launch := client.LaunchRuns{Customer: "alice", Group: group}
	for n := range runs {
		scraper := r.IDs.New()
		r.state.Must(r.t, client.PutScraper{Create: true, ID: scraper, Customer: "alice",
			Group: group, Spec: model.Scraper{Name: fmt.Sprint("busy", n),
				Type: model.SingleProduct, ItemsConfig: title}})
		launch.Runs = append(launch.Runs, client.GroupRun{Job: r.IDs.New(), Entry: r.IDs.New(),
			List: r.IDs.New(), Scraper: scraper, Links: 1, Tiers: model.TiersOf(model.Plain)})
	}
	r.state.Must(r.t, launch)
	return group
}

// Scrapers start by their own schedules; a running one is skipped.
func TestDueScrapers(t *testing.T) {
	r := &dueRig{rig: newRig(t), t: t}
	r.add("one", "https://shop.test/", "0 0 * * *")
	r.add("two", "https://shop.test/", "0 0 * * *")
	view := r.state.View()
	one, two := view.ScraperByName("alice", "one").ID, view.ScraperByName("alice", "two").ID
	if _, err := r.Start(t.Context(), r.caller(""), two, nil); err != nil {
		t.Fatal(err)
	}
	r.item = r.state.StartDue(t, one, two)
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	view = r.state.View()
	first, second := view.Schedule(one).Starts, view.Schedule(two).Starts
	if len(first) != 1 || first[0].Launched != 1 || len(second) != 1 || second[0].Launched != 0 ||
		second[0].Reason != client.SkipRunning || len(view.OpenJobsOf(one)) != 1 {
		t.Errorf("%+v, %+v", first, second)
	}
	r.wantLists(t, 2)
}

// A scraper paused after it came due does not start, and its schedule says why.
func TestDueScrapersOfAPausedGroup(t *testing.T) {
	r := &dueRig{rig: newRig(t), t: t}
	r.add("one", "https://shop.test/", "0 0 * * *")
	one := r.state.View().ScraperByName("alice", "one").ID
	r.item = r.state.StartDue(t, one)
	r.state.Must(t, client.PutStartType{Customer: "alice", Group: r.group, StartType: "NONE"})
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	view := r.state.View()
	if starts := view.Schedule(one).Starts; len(starts) != 1 || starts[0].Launched != 0 ||
		starts[0].Reason != client.SkipPaused || len(view.OpenJobsOf(one)) != 0 {
		t.Errorf("%+v", starts)
	}
	r.wantLists(t, 0)
}

// Without a leader a step fails, and is tried again.
func TestDueWithoutALeader(t *testing.T) {
	r := newDue(t, 2)
	r.state.Fail(clienttest.Down())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	kind := Due(DueConfig{Launcher: r.Launcher})
	if _, err := kind.Step(ctx, work.Item{ID: r.item}); err == nil {
		t.Error("it went on")
	}
	r.state.Fail(nil)
	if end, err := r.do(kind); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	r.check(2)
}

// A plan without scheduled starts launches nothing, and the customer is told.
func TestDueWithoutThePlan(t *testing.T) {
	r := newDue(t, 2)
	r.state.Must(t, client.ChooseFree{Customer: "alice"})
	if end, err := r.do(Due(DueConfig{Launcher: r.Launcher})); end != work.Ended || err != nil {
		t.Fatal(end, err)
	}
	view := r.state.View()
	start := view.Schedule(r.group).Starts[0]
	if start.Launched != 0 || start.Skipped != 3 || start.Reason != client.SkipPlan ||
		view.Inbox("alice").Unread != 1 {
		t.Errorf("%+v, %d notices", start, view.Inbox("alice").Unread)
	}
	r.wantLists(t, 0)
}
