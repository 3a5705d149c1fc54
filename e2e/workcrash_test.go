package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/skew"
	"shoal.dev/shoal/testkit/synthweb"
)

// workPoints are where background work is killed: around each turn at its table, around each step
// of each kind, and within the steps' writes.
var workPoints = []string{
	"work.before_exchange:1", "work.before_exchange:2",
	"work.after_exchange:1", "work.after_exchange:2",
	"work.backup.before_step", "work.backup.after_put", "work.backup.after_step",
	"work.blobs.before_step", "work.blobs.after_step",
	"work.erase.before_step", "work.erase.after_step",
	"work.expire.before_step", "work.expire.after_keep", "work.expire.after_condense",
	"work.expire.after_step",
	"work.linkstates.before_step", "work.linkstates.after_step",
	"work.orphans.before_step", "work.orphans.before_drop:1", "work.orphans.before_drop:3",
	"work.orphans.after_drop:1", "work.orphans.after_drop:3", "work.orphans.after_step",
	"work.recount.before_step", "work.recount.after_step",
	"work.remove.before_step", "work.remove.after_step",
	"work.retain.before_step", "work.retain.after_step",
	"work.webhooks.before_step", "work.webhooks.after_step",
	"work.wipe.before_step", "work.wipe.after_step",
	"rowstore.before_commit:1", "rowstore.after_commit:1", "rowstore.after_commit:2",
	"raft.before_apply:8", "raft.after_apply:8",
}

// Contents of the old product.
const (
	oldPages, youngPages = 20, 10
	orphanLists          = 3
	// After a greater clock jump nothing is removed for a day.
	leap     = 156 * time.Hour
	leaps    = 13 // from the old run to the young one; with one more it is too old
	settling = 2 * time.Minute
)

// oldWeb is the web of an old product.
var oldWeb = synthweb.Config{Hosts: oldPages, PagesPerHost: 2, PageBytes: []int{2500}}

// TestCrashesOfWork kills the process at each point of background work, when each kind of it has
// something to do. Rows are too old, lists are orphaned, a recount is due. In the end everything
// due is removed, everything else is there, and the books are unchanged.
func TestCrashesOfWork(t *testing.T) {
	t.Parallel()
	web := newWeb(t, oldWeb)
	old := newOldProduct(t, web)
	for _, point := range share(t, workPoints) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			o := old.copied(t, web)
			o.late.pass(t, leap)
			o.dies(crash.At + "=" + point)
			o.bring()
			o.awaitWork()
			o.checkWork()
			if strings.HasPrefix(point, "work.expire.") {
				o.bring()
				o.checkRerun()
			}
		})
	}
}

// oldProduct is a product with a run whose rows are about to expire, a young run, and orphaned
// lists.
type oldProduct struct {
	*crashCase
	late       *late
	old, young suite.Launched
	paid       int64 // balance
}

func newOldProduct(t *testing.T, web *synthweb.Web) *oldProduct {
	t.Helper()
	o := openOldProduct(t, web)
	o.bring()
	o.Fill(o.Client, suite.Plenty)
	o.old = o.reported(oldPages)
	o.Down(t)
	for range leaps {
		o.late.pass(t, leap)
		o.bring()
		o.Down(t)
	}
	o.bring()
	o.young = o.reported(youngPages)
	o.paid = suite.Must(o.Wallet(t.Context()))(t).BalanceMicros
	o.Down(t)
	made := ids.Random{Now: func() time.Time { return time.Now().Add(o.late.ahead) }}
	err := withStore(o.data, func(store rowstore.Store) error {
		for range orphanLists {
			list, err := store.CreateList(t.Context(), made.New())
			if err == nil {
				_, err = list.Add(t.Context(), "http://a.example/", "http://a.example/")
			}
			if err == nil {
				_, err = list.Finish(t.Context())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func openOldProduct(t *testing.T, web *synthweb.Web) *oldProduct {
	t.Helper()
	args := append(suite.Fast(), "--no-rate-limits")
	o := &oldProduct{crashCase: &crashCase{
		service: &service{single: newSingle(t, args, web)}}}
	o.late = &late{single: o.single, clock: filepath.Join(t.TempDir(), "clock")}
	o.Service = &suite.Service{T: t, Product: o.late, Web: web}
	o.env = []string{skew.File + "=" + o.late.clock}
	return o
}

// copied is another product with the same past.
func (o *oldProduct) copied(t *testing.T, web *synthweb.Web) *oldProduct {
	t.Helper()
	another := openOldProduct(t, web)
	another.old, another.young, another.paid = o.old, o.young, o.paid
	another.late.ahead = o.late.ahead
	if err := os.CopyFS(another.data, os.DirFS(o.data)); err != nil {
		t.Fatal(err)
	}
	return another
}

// reported is an ended run of some pages.
func (o *oldProduct) reported(pages int) suite.Launched {
	o.T.Helper()
	var urls []string
	for url := range o.Web.URLs(pages) {
		urls = append(urls, url)
	}
	run := suite.ProductOrder(o.Client, urls).Launch(o.T)
	suite.Must(o.Report(suite.Within(o.T, suite.Patience), run))(o.T)
	return run
}

// awaitWork waits until all due work is done, and rests until it is due again.
func (o *oldProduct) awaitWork() {
	o.T.Helper()
	// This product has none of these: two need a server of their own, nine do not recur.
	elsewhere := []string{work.Email, work.Contracts, work.Launch, work.Export, work.Harvest,
		work.Import, work.Catalogue, work.Match, work.Merge, work.ReExtract, work.Changes}
	for ctx := suite.Within(o.T, settling); ; {
		var list struct {
			Content []struct {
				Kind, State, Error string
				DueAt              time.Time
			}
		}
		err := o.Admin().Call(ctx, "GET", "/api/admin/work", nil, nil, &list)
		if err != nil {
			o.T.Fatal(err)
		}
		resting := map[string]bool{}
		for _, item := range list.Content {
			resting[item.Kind] = item.State == "WAITING" && item.Error == "" &&
				item.DueAt.After(time.Now().Add(o.late.ahead))
		}
		if len(list.Content) > len(work.Kinds()) {
			o.T.Fatalf("recurring work is there twice: %+v", list.Content)
		}
		if !slices.ContainsFunc(work.Kinds(), func(kind string) bool {
			return !resting[kind] && !slices.Contains(elsewhere, kind)
		}) {
			return
		}
		select {
		case <-ctx.Done():
			o.T.Fatalf("work that was due does not end: %+v", list.Content)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checkWork compares what is left with what should be.
func (o *oldProduct) checkWork() {
	t := o.T
	t.Helper()
	var kept []struct{ TakenAt time.Time }
	if err := o.Admin().Call(t.Context(), "GET", "/api/admin/backups", nil, nil,
		&kept); err != nil {
		t.Fatal(err)
	}
	if now := time.Now().Add(o.late.ahead); len(kept) == 0 ||
		kept[0].TakenAt.Before(now.Add(-settling)) || len(kept) > 7 {
		t.Errorf("of this time, %v, no backup is kept, or more than are wanted: %v", now, kept)
	}
	suite.CheckWallet(t, o.Client)
	if paid := suite.Must(o.Wallet(t.Context()))(t).BalanceMicros; paid != o.paid {
		t.Errorf("the balance is %d, and was %d", paid, o.paid)
	}
	runs, differ, err := o.Admin().RecountOfProduct(t.Context())
	if err != nil || runs != 2 || differ > 0 {
		t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
	}
	if rows := suite.Must(o.Rows(t.Context(), o.young.JobID))(t); len(rows) == 0 {
		t.Error("the young run's rows are gone")
	}
	if rows := suite.Must(o.Rows(t.Context(), o.old.JobID))(t); len(rows) > 0 {
		t.Errorf("%d rows of the old run are read", len(rows))
	}
	o.Down(t)
	for run, pages := range map[suite.Launched]int{o.old: 0, o.young: youngPages} {
		if n := len(suite.Must(o.Records(t.Context(), run.JobID))(t)); n != pages {
			t.Errorf("run %s has %d page records, want %d", run.JobID, n, pages)
		}
	}
	if lists := suite.Must(o.Lists(context.WithoutCancel(t.Context())))(t); len(lists) != 1 {
		t.Errorf("%d lists are left, want that of the young run: %v", len(lists), fmt.Sprint(lists))
	}
}
