package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// Sizes of two files whose rows are joined. The second begins after some rows of the first, so that
// each has rows of its own. They share more than two batches.
const (
	joinedRows, aloneRows = 5_000, 500
	sharedRows            = joinedRows - aloneRows
)

// resultPoints are where a merge and a match are killed. They are within their calls, around and
// within their steps, and while the previous result's rows are removed.
func resultPoints(within string) []string {
	points := []string{"raft.before_apply:8", "raft.after_apply:8", "rowstore.before_commit:1",
		"rowstore.after_commit:1", "work.remove.before_delete", "work.remove.after_delete",
		"work.remove.before_forget"}
	for _, step := range []string{"before_step", "before_put", "before_put:3", "after_put:1",
		"after_put:2", "after_seal", "after_end", "after_step"} {
		points = append(points, within+step)
	}
	return points
}

// TestCrashesOfMerges kills the process at each point of a merge that replaces another one. The
// call is repeated under its key. In the end it has the rows of a merge without a kill, each once
// and no others. It was reported once, is in the history once, and nothing was charged.
func TestCrashesOfMerges(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, resultPoints("work.merge.")) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			j := newJoined(t)
			job := j.diesIn(point, j.merge)
			if n := len(j.before); n != sharedRows {
				t.Errorf("%d rows were merged without a kill, want %d", n, sharedRows)
			}
			if told := j.toldOf("MERGE_COMPLETED", job); told != 1 {
				t.Errorf("it was told %d times", told)
			}
			j.checkStored(job, sharedRows)
		})
	}
}

// TestCrashesOfMatches kills the process at each point of a match that replaces another one, like
// TestCrashesOfMerges.
func TestCrashesOfMatches(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, resultPoints("work.match.")) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			j := newJoined(t)
			j.sendCatalogue()
			job := j.diesIn(point, j.match)
			if n := len(j.before); n != 2*sharedRows {
				t.Errorf("%d rows were matched without a kill, want %d", n, 2*sharedRows)
			}
			j.checkStored(job, 2*sharedRows)
		})
	}
}

// TestCrashesOfCatalogues kills the process at each point of reading an uploaded catalogue. In the
// end rows are matched with it.
func TestCrashesOfCatalogues(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{
		"work.catalogue.before_step", "work.catalogue.before_end",
		"work.catalogue.after_end", "work.catalogue.after_step"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			j := newJoined(t)
			j.Down(t)
			j.bring(crash.At + "=" + point)
			j.sendCatalogue()
			if len(j.Deaths) == 0 {
				j.awaitDeath()
			}
			if err := j.match(t.Context(), suite.NewKey()); err != nil {
				t.Fatal(err)
			}
			job := j.newest()
			j.awaitRun(job)
			j.checkStored(job, 2*sharedRows)
		})
	}
}

// joined is a product with two files in a group, whose rows are joined.
type joined struct {
	*crashCase
	group    string
	scrapers []string // of the files
	runs     []string // of these
	made     string   // the member that links the result's group to its source group
	before   map[string]int
}

func newJoined(t *testing.T) *joined {
	t.Helper()
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1, PageBytes: []int{2500}})
	args := append(suite.Fast(), "--no-rate-limits")
	j := &joined{crashCase: &crashCase{service: &service{single: newSingle(t, args, web)}}}
	j.Service = &suite.Service{T: t, Product: j.single, Web: web, Args: args}
	j.bring()
	var made struct{ ID string }
	if err := j.Call(t.Context(), "PUT", "/api/scraper/group", nil, map[string]any{
		"name": "files", "startType": "MANUAL", "shouldMatchProducts": true}, &made); err != nil {
		t.Fatal(err)
	}
	j.group = made.ID
	for n, name := range []string{"one", "two"} {
		from := n * aloneRows
		var text strings.Builder
		fmt.Fprintf(&text, "title,gtin,%s\n", name)
		for n := from; n < from+joinedRows; n++ {
			fmt.Fprintf(&text, "article %d,%s,%d\n", n, gtin(n), n)
		}
		file := j.send("/api/scraper/group/"+j.group+"/file-scraper",
			url.Values{"format": {"csv"}, "name": {name}}, text.String())
		j.awaitRun(file.JobID)
		j.scrapers, j.runs = append(j.scrapers, file.Scraper.ID), append(j.runs, file.JobID)
	}
	return j
}

// gtin is the trade number of an article: thirteen digits, the last of which is a check digit.
func gtin(article int) string {
	digits, sum := fmt.Sprintf("400000%06d", article), 0
	for place, digit := range digits {
		sum += int(digit-'0') * (1 + 2*(place%2))
	}
	return fmt.Sprint(digits, (10-sum%10)%10)
}

// sendCatalogue sends the products that both files have, and waits until rows are matched with
// them.
func (j *joined) sendCatalogue() {
	j.T.Helper()
	var text strings.Builder
	text.WriteString("id,gtin,title\n")
	for n := aloneRows; n < joinedRows; n++ {
		fmt.Fprintf(&text, "p%d,%s,product %d\n", n, gtin(n), n)
	}
	j.survive("catalogue", func(ctx context.Context) error {
		answer, err := j.Admin().Again("catalogue").Do(ctx, "PUT", "/api/admin/catalogue",
			url.Values{"format": {"csv"}}, "text/csv", strings.NewReader(text.String()))
		if err != nil {
			return err
		}
		return answer.Body.Close() // so far only accepted
	})
	var status struct{ Current *struct{ Products int } }
	j.await("the catalogue", func(ctx context.Context) (bool, error) {
		err := j.Admin().Call(ctx, "GET", "/api/admin/catalogue/status", nil, nil, &status)
		return status.Current != nil, err
	})
	if got := status.Current.Products; got != sharedRows {
		j.T.Fatalf("the catalogue has %d products", got)
	}
}

// merge merges the files.
func (j *joined) merge(ctx context.Context, key string) error {
	j.made = "enrichedOf"
	var merged struct{ MergedItems *int }
	err := j.Again(key).Call(ctx, "PUT", "/api/scraper/data/group/"+j.group+"/merge",
		url.Values{"scraperJobStatusIds": j.runs}, nil, &merged)
	if err == nil && (merged.MergedItems == nil || *merged.MergedItems != sharedRows) {
		j.T.Errorf("it answers %v", merged)
	}
	return err
}

// match matches the files' rows with the catalogue.
func (j *joined) match(ctx context.Context, key string) error {
	j.made = "matchedOf"
	return j.Again(key).Call(ctx, "PUT", "/api/scraper/group/"+j.group+"/match", nil, nil, nil)
}

// diesIn joins the rows, joins them again with a kill at a point, and returns the second run.
func (j *joined) diesIn(point string, join func(ctx context.Context, key string) error) string {
	t := j.T
	t.Helper()
	if err := join(t.Context(), suite.NewKey()); err != nil {
		t.Fatal(err)
	}
	first := j.newest()
	j.awaitRun(first)
	j.before = j.result(first)
	wallet := suite.Must(j.Wallet(t.Context()))(t)
	j.Down(t)

	j.bring(crash.At + "=" + storePoint(point))
	key := suite.NewKey()
	j.survive("join", func(ctx context.Context) error { return join(ctx, key) })
	second := j.newest()
	if second == first {
		t.Fatal("there is no second run")
	}
	j.awaitRun(second)
	if len(j.Deaths) == 0 {
		j.awaitDeath()
	}
	if again := j.newest(); again != second {
		t.Errorf("run %s is there beside run %s", again, second)
	}
	if after := j.result(second); !maps.Equal(after, j.before) {
		t.Errorf("%d different rows, and %d without a kill", len(after), len(j.before))
	}
	j.await("the end of the rows before", func(ctx context.Context) (bool, error) {
		rows, err := j.Rows(ctx, first)
		return len(rows) == 0, err
	})
	if n := len(suite.Must(j.Jobs(t.Context(), ""))(t)); n != len(j.runs)+2 {
		t.Errorf("%d runs are in the history, want %d", n, len(j.runs)+2)
	}
	if now := suite.Must(j.Wallet(t.Context()))(t); now != wallet {
		t.Errorf("the wallet was %+v, and is %+v", wallet, now)
	}
	suite.CheckWallet(t, j.Client)
	j.CheckBooks()
	return second
}

// checkStored stops the product, and requires page records of a run for that many rows, one per
// batch. No sorted data is left on the disk.
func (j *joined) checkStored(job string, want int) {
	t := j.T
	t.Helper()
	j.Down(t)
	units, rows := map[string]bool{}, 0
	for _, record := range suite.Must(j.Records(t.Context(), job))(t) {
		units[fmt.Sprint(record.Unit)] = true
		rows += int(record.Items)
	}
	if rows != want || len(units) != (want+1_999)/2_000 {
		t.Errorf("%d page records have %d rows, want %d", len(units), rows, want)
	}
	if left := suite.Must(filepath.Glob(filepath.Join(j.data, "merge-*")))(t); len(left) > 0 {
		t.Errorf("on the disk are %v", left)
	}
}

// newest returns the newest run of the result's group.
func (j *joined) newest() (id string) {
	j.T.Helper()
	j.await("the result's run", func(ctx context.Context) (bool, error) {
		group, err := j.resultOf(ctx)
		if err != nil || group == "" {
			return false, err
		}
		jobs, err := j.Jobs(ctx, "") // newest first
		for _, job := range jobs {
			if id == "" && job.GroupID == group {
				id = job.ID
			}
		}
		return id != "", err
	})
	return id
}

// resultOf returns the group with the result, "" if there is none.
func (j *joined) resultOf(ctx context.Context) (string, error) {
	var groups []map[string]any
	if err := j.Call(ctx, "GET", "/api/scraper/group/list", nil, nil, &groups); err != nil {
		return "", err
	}
	at := slices.IndexFunc(groups, func(g map[string]any) bool { return g[j.made] == j.group })
	if at < 0 {
		return "", nil
	}
	id, _ := groups[at]["id"].(string)
	return id, nil
}

// result returns the rows of the result's group, with how often each occurs. All must belong to one
// run, and each id must occur once. It omits what differs from run to run.
func (j *joined) result(job string) map[string]int {
	j.T.Helper()
	group := ""
	j.survive("groups", func(ctx context.Context) (err error) {
		group, err = j.resultOf(ctx)
		return err
	})
	text := j.read("/api/scraper/data/export", url.Values{"groupId": {group},
		"format": {"jsonl"}})
	rows, seen := map[string]int{}, map[string]bool{}
	for line := range strings.Lines(text) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			j.T.Fatalf("%s: %v", line, err)
		}
		if row["_jobId"] != job {
			j.T.Fatalf("a row is not of run %s: %s", job, line)
		}
		id := fmt.Sprint(row["_rowId"])
		if seen[id] {
			j.T.Errorf("row %s is there twice", id)
		}
		seen[id] = true
		maps.DeleteFunc(row, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
		whole, err := json.Marshal(row)
		if err != nil {
			j.T.Fatal(err)
		}
		rows[string(whole)]++
	}
	return rows
}

// awaitRun waits until a run is COMPLETED.
func (j *joined) awaitRun(id string) {
	j.T.Helper()
	j.await("run "+id, func(ctx context.Context) (bool, error) {
		jobs, err := j.Jobs(ctx, "")
		at := slices.IndexFunc(jobs, func(job recount.Job) bool { return job.ID == id })
		if err != nil || at < 0 {
			return false, err
		}
		if jobs[at].State == "FAILED" {
			j.T.Fatalf("run %s failed: %s", id, jobs[at].ErrorMessage)
		}
		return jobs[at].State == "COMPLETED", nil
	})
}

// await waits until is returns true, however often the process dies.
func (j *joined) await(what string, is func(ctx context.Context) (bool, error)) {
	j.T.Helper()
	for ctx := suite.Within(j.T, suite.Patience); ; {
		so := false
		j.survive(what, func(ctx context.Context) (err error) {
			so, err = is(ctx)
			return err
		})
		if so {
			return
		}
		select {
		case <-ctx.Done():
			j.T.Fatalf("waited in vain for %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
