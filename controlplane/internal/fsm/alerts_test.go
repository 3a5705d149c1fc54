package fsm

import (
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// alerted makes a scraper in a group whose customer is told of changes.
func (b *bench) alerted(name string) (scraper ids.ID) {
	b.t.Helper()
	scraper = b.product(name)
	b.must(b.alerts(scraper, &state.Alerts{On: []string{"ADDED"}}))
	return scraper
}

func (b *bench) alerts(scraper ids.ID, alerts *state.Alerts) command.PutGroupPayload {
	group := b.view().Group(b.view().Scraper(scraper).Group)
	return command.PutGroupPayload{ID: group.ID, Customer: "a", Name: group.Name,
		DataTable: group.DataTable, StartType: group.StartType, Alerts: alerts}
}

// A complete run is compared by one item of work, and its changes are reported once.
func TestChangesAreToldOnce(t *testing.T) {
	b := newBench(t)
	scraper := b.alerted("Shop")
	job := b.run(scraper, 1, model.Delivered)
	tell := command.TellChangesPayload{Customer: "a", Job: job, Scraper: scraper,
		Changes: state.RunChanges{From: ids.ID{9}, Added: 2,
			Examples: append(make([]string, command.MaxAlertExamples), "one too many")}}
	tell.Changes.Examples[0] = "x" + strings.Repeat("ö", command.MaxAlertText)
	b.must(tell)
	for range 2 {
		b.must(command.CloseRunPayload{Job: job})
	}
	items := b.view().WorkOf(work.Changes, "a")
	if len(items) != 1 || string(items[0].Args) != string(job[:]) {
		t.Fatalf("work: %+v", items)
	}
	foreign := tell
	foreign.Customer = "b"
	b.must(foreign)
	for range 2 {
		b.must(tell)
	}
	var all []*state.Notice
	for _, n := range told(b.view(), "a") {
		if n.Event == model.RunChanged {
			all = append(all, n)
		}
	}
	if len(all) != 1 || len(b.view().WorkOf(work.Changes, "a")) > 0 {
		t.Fatalf("told: %+v", all)
	}
	n := all[0]
	if n.ID != state.AlertID("a", job) || n.Subject != job || n.Name != "Shop" ||
		n.Changes.Added != 2 || len(n.Changes.Examples) != command.MaxAlertExamples ||
		n.Changes.Examples[0] != "x"+strings.Repeat("ö", (command.MaxAlertText-1)/2) {
		t.Errorf("%+v, %+v", n, n.Changes)
	}
}

// Stopped and failed runs are not compared, nor are runs of groups without alerts.
func TestWhatIsNotCompared(t *testing.T) {
	b := newBench(t)
	plain, alerted := b.product("Plain"), b.alerted("Shop")
	stopped := b.run(alerted, 2, model.Delivered)
	b.must(command.StopRunPayload{Customer: "a", Job: stopped})
	for _, job := range []ids.ID{stopped, b.run(plain, 1, model.Delivered),
		b.run(alerted, 1, model.Errored)} {
		b.must(command.CloseRunPayload{Job: job})
	}
	if items := b.view().WorkOf(work.Changes, "a"); len(items) > 0 {
		t.Errorf("work: %+v", items[0])
	}
}

// The number of kinds and of key fields is bounded.
func TestAlertsAreBounded(t *testing.T) {
	b := newBench(t)
	scraper := b.alerted("Shop")
	kinds, key := []string{"ADDED", "REMOVED", "CHANGED"}, []string{"a", "b", "c", "d", "e"}
	b.must(b.alerts(scraper, &state.Alerts{On: kinds, Key: key}))
	for _, bad := range []*state.Alerts{{On: append(kinds, "x")}, {Key: key},
		{On: kinds, Key: append(key, "f")}} {
		b.refused(b.alerts(scraper, bad), fault.InvalidRequest)
	}
}

// Complete uploads and runs of kept bodies are compared, too. A protected upload adds to the same
// run, so there is nothing to compare.
func TestRunsWithoutPagesAreCompared(t *testing.T) {
	b := newBench(t)
	scraper := b.alerted("Shop")
	extract := b.reExtract(scraper)
	upload := b.upload(b.view().Scraper(scraper).Group, "prices")
	failed := b.upload(b.view().Scraper(scraper).Group, "none")
	for range 2 {
		b.must(extract)
		b.must(command.EndReExtractPayload{Job: extract.Job,
			Done: command.ReExtracted{Success: 9, Items: 9, Pages: 9, Delivered: 9}})
		b.must(upload)
		b.must(command.EndImportPayload{Job: upload.Job, Items: 2})
		b.must(failed)
		b.must(command.EndImportPayload{Job: failed.Job, Message: "no csv"})
	}
	var jobs []string
	for _, item := range b.view().WorkOf(work.Changes, "a") {
		jobs = append(jobs, string(item.Args))
		if job := b.view().Job(ids.ID(item.Args)); !job.Closed {
			t.Error("compared before it is closed")
		}
	}
	wanted := []string{string(extract.Job[:]), string(upload.Job[:])}
	slices.Sort(jobs)
	slices.Sort(wanted)
	if !slices.Equal(jobs, wanted) {
		t.Errorf("%d items: %q", len(jobs), jobs)
	}
}
