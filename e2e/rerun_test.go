package e2e

import (
	"slices"
	"testing"

	"shoal.dev/shoal/e2e/suite"
)

// TestARerunKnowsWhatWasChargedLongAgo reruns a list after more than 90 days. Its page records and
// its list are gone, but what was charged is not charged again.
func TestARerunKnowsWhatWasChargedLongAgo(t *testing.T) {
	t.Parallel()
	web := newWeb(t, oldWeb)
	o := openOldProduct(t, web)
	o.bring()
	o.Fill(o.Client, suite.Plenty)
	o.old = o.reported(oldPages)
	o.Down(t)
	for range leaps + 2 {
		o.late.pass(t, leap)
		o.bring()
		o.Down(t)
	}
	o.bring()
	o.awaitWork()
	o.checkRerun()
}

// checkRerun reruns the old run's list, whose data was all removed, with new addresses beside its
// own.
func (o *oldProduct) checkRerun() {
	t := o.T
	t.Helper()
	if rows := suite.Must(o.Rows(t.Context(), o.old.JobID))(t); len(rows) > 0 {
		t.Errorf("%d rows of the old run are read", len(rows))
	}
	rerun := func(urls []string) (launched suite.Launched, err error) {
		err = o.Call(t.Context(), "POST", "/api/scraper/url-list-run", nil, map[string]any{
			"scraperId": o.old.ScraperID, "rerun": true, "urls": urls}, &launched)
		return launched, err
	}
	all := slices.Collect(o.Web.URLs(2 * oldPages))
	if _, err := rerun(all[:oldPages]); suite.CodeOf(err) != "list_already_run" {
		t.Errorf("a rerun of what was charged long ago: %v", err)
	}
	if _, err := rerun(nil); suite.CodeOf(err) != "invalid_request" {
		t.Errorf("a rerun of a list that is no longer kept: %v", err)
	}
	run := suite.Must(rerun(all))(t)
	if run.LinksQueued != oldPages {
		t.Fatalf("the rerun takes %d addresses, want those %d that were never charged",
			run.LinksQueued, oldPages)
	}
	over := suite.Must(o.Report(suite.Within(t, suite.Patience), run))(t)
	if want := -int64(oldPages) * suite.PlainPrice; over.Entry.AmountMicros != want {
		t.Errorf("the rerun is charged %d, want %d", over.Entry.AmountMicros, want)
	}
	if _, err := rerun(all); suite.CodeOf(err) != "list_already_run" {
		t.Errorf("a rerun when all is charged, part of it long ago: %v", err)
	}
	suite.CheckWallet(t, o.Client)
	o.CheckBooks()
	expected := o.Expected(suite.ProductOrder(o.Client, all[oldPages:]))
	expected.Free, expected.Shared = 0, true // the old run also requested its pages
	over = o.WithRecords(over)
	suite.Check(t, expected, over)
	if records := suite.Must(o.Records(t.Context(), o.old.JobID))(t); len(records) > 0 {
		t.Errorf("the old run has %d page records", len(records))
	}
}
