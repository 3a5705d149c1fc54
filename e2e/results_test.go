package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/recount"
)

var resultsUpdate = flag.Bool("results-update", false, "keep what the results are as a golden")

// TestResultsAreThoseOfTheGolden asks one process for its results on stored rows. These are a diff,
// a profile, oddities, a merge, a match, and why a run is held back. Both row stores share the
// golden: with -clickhouse its answers are compared with SQLite's.
func TestResultsAreThoseOfTheGolden(t *testing.T) {
	t.Parallel()
	g := &golden{ids: map[string]string{}}
	j := newJoined(t)
	g.addJoined(j, "merge", j.merge)
	later := j.sendLater()
	runs := url.Values{"from": {j.runs[0]}, "to": {later}}
	for _, key := range []string{"title", "gtin,one"} {
		runs.Set("key", key)
		g.add("diff by "+key, j.read("/api/scraper/data/diff", runs))
	}
	runs.Set("format", "csv")
	g.add("diff as csv", j.read("/api/scraper/data/diff", runs))
	for _, job := range []string{j.runs[0], later} {
		g.add("profile", j.read("/api/scraper/data/profile", url.Values{"jobId": {job}}))
	}
	g.add("oddities", j.read("/api/scraper/data/oddities", url.Values{"jobId": {later}}))

	j.sendCatalogue()
	g.addJoined(j, "match", j.match)

	c, run := newQuarantined(t)
	c.bring()
	odd := c.few(run)
	suite.Must(c.Report(suite.Within(t, suite.Patience), odd))(t)
	g.add("quarantine", c.heldFor(odd.JobID))
	g.check(t)
}

// sendLater replaces the first file: two rows are removed, two added and two changed. Both runs are
// kept.
func (j *joined) sendLater() string {
	j.T.Helper()
	jobs := suite.Must(j.Jobs(j.T.Context(), ""))(j.T)
	first := slices.IndexFunc(jobs, func(job recount.Job) bool { return job.ID == j.runs[0] })
	scraper := jobs[first].ScraperID
	if err := j.Call(j.T.Context(), "PUT", "/api/scraper/"+scraper+"/retention", nil,
		map[string]any{"retentionCount": 5}, nil); err != nil {
		j.T.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("title,gtin,one\n")
	for n := 2; n < joinedRows+2; n++ {
		value := fmt.Sprint(n)
		if n%2_000 == 999 {
			value = "sold out"
		}
		fmt.Fprintf(&text, "article %d,%s,%s\n", n, gtin(n), value)
	}
	later := j.send("/api/scraper/"+scraper+"/file", url.Values{"format": {"csv"}}, text.String())
	j.awaitRun(later.JobID)
	return later.JobID
}

// golden is the answers without what differs from run to run.
type golden struct {
	text strings.Builder
	ids  map[string]string
}

var (
	anID  = regexp.MustCompile(`\b[0-9a-f]{24}\b`)
	aRow  = regexp.MustCompile(`(rowId"+: *"+)[^"]+`)
	aTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
)

// resultsGolden is the golden's file.
var resultsGolden = filepath.Join("testdata", "results.golden")

// add adds an answer. Ids are named in order of first appearance.
func (g *golden) add(name, answer string) {
	answer = anID.ReplaceAllStringFunc(answer, func(id string) string {
		if g.ids[id] == "" {
			g.ids[id] = fmt.Sprintf("ID%d", len(g.ids)+1)
		}
		return g.ids[id]
	})
	answer = aRow.ReplaceAllString(aTime.ReplaceAllString(answer, "TIME"), "${1}ROW")
	var object json.RawMessage
	if json.Unmarshal([]byte(answer), &object) == nil {
		indented, _ := json.MarshalIndent(object, "", " ") // it was just parsed
		answer = string(indented)
	}
	fmt.Fprintf(&g.text, "== %s\n%s\n", name, strings.TrimSpace(answer))
}

// addJoined adds the rows of a merge or a match: number, first ones by name, and checksum.
func (g *golden) addJoined(j *joined, name string, join func(context.Context, string) error) {
	j.T.Helper()
	if err := join(j.T.Context(), suite.NewKey()); err != nil {
		j.T.Fatal(err)
	}
	job := j.newest()
	j.awaitRun(job)
	var rows []string
	for row, times := range j.result(job) {
		row = aRow.ReplaceAllString(row, "${1}ROW")
		rows = append(rows, slices.Repeat([]string{row}, times)...)
	}
	slices.Sort(rows)
	g.add(name, fmt.Sprintf("%d rows, %x\n%s", len(rows),
		sha256.Sum256([]byte(strings.Join(rows, "\n"))),
		strings.Join(rows[:min(3, len(rows))], "\n")))
}

func (g *golden) check(t *testing.T) {
	t.Helper()
	if *resultsUpdate {
		if err := os.WriteFile(resultsGolden, []byte(g.text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := string(suite.Must(os.ReadFile(resultsGolden))(t))
	if diff := cmp.Diff(want, g.text.String()); diff != "" {
		t.Error(diff)
	}
}
