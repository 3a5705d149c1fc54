package historytest_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/historytest"
	"shoal.dev/shoal/controlplane/internal/backup"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// TestWhatIsMadeIsWhole reads everything that was made, as the API does.
func TestWhatIsMadeIsWhole(t *testing.T) {
	const runs = 1_000
	now := time.Unix(1_790_000_000, 0)
	made, err := historytest.New(historytest.Config{Customers: 30, Scrapers: 90, Recipes: 4,
		Active: 20, Runs: runs, Keep: 10, Shards: 4, Now: now,
		Address: func(n int) string { return fmt.Sprintf("https://shop-%d.example/", n) },
		Fields:  []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}})
	if err != nil {
		t.Fatal(err)
	}
	var past rowstoretest.Archive
	if err := made.Fill(t.Context(), &past, func(int) {}); err != nil {
		t.Fatal(err)
	}
	var saved, written bytes.Buffer
	if err := made.Backup(&saved); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Read(&saved, &written); err != nil {
		t.Fatal(err)
	}
	store, err := state.Restore(&written)
	if err != nil {
		t.Fatal(err)
	}
	view, history := store.View(), client.NewHistory(&past)
	all, recent, told := int64(0), 0, 0
	for n := range 20 {
		ended, listed, err := history.Runs(t.Context(), view, client.RunPage{Limit: runs,
			Customer: historytest.Ref(n), By: rowstore.ByQueued,
			Compare: func(a, b *client.Job) int { return int(a.Queued - b.Queued) }})
		if err != nil {
			t.Fatal(err)
		}
		entries, entered, err := history.Entries(t.Context(), view, historytest.Ref(n),
			rowstore.PastSpan{}, 0, 5)
		if err != nil || entered != listed || len(entries) != 5 {
			t.Fatalf("customer %d has %d runs and %d entries, %v", n, listed, entered, err)
		}
		if got, want := entries[0].BalanceAfter, view.Wallet(historytest.Ref(n)).Balance(); got !=
			want {
			t.Errorf("the newest entry of customer %d leaves %d, the wallet has %d", n, got, want)
		}
		kept := 0
		view.CustomerJobs(historytest.Ref(n), func(*client.Job) bool { kept++; return true })
		if kept != 10 {
			t.Errorf("the state keeps %d runs of customer %d", kept, n)
		}
		all += listed
		of := map[ids.ID]int64{}
		for _, run := range ended {
			if of[run.ID] = run.Finished; run.Finished > now.AddDate(0, 0, -90).UnixMilli() {
				recent++
			}
		}
		unread := view.Inbox(historytest.Ref(n)).Unread
		view.Notices(historytest.Ref(n), func(notice *client.Notice) bool {
			if notice.At != of[notice.Subject] || notice.Name == "" {
				t.Errorf("a notice: %+v", notice)
			}
			told++
			unread--
			return true
		})
		if unread != 0 {
			t.Errorf("customer %d has %d unread notices too many", n, int32(unread))
		}
	}
	if count, size := made.Notices(); told != recent || count != recent || size == 0 {
		t.Errorf("%d notices in %d bytes, %d are listed, and %d runs ended in 90 days", count,
			size, told, recent)
	}
	if all != runs {
		t.Errorf("%d runs, want %d", all, runs)
	}
	if scraper := view.Scraper(made.Scraper(1, 2)); scraper.Past == nil ||
		view.Job(scraper.LastJob) == nil {
		t.Errorf("a scraper's last runs: %+v", scraper.Past)
	}
}
