package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
)

// addedFrom is the article with which an added file begins: in the middle of the rows that are
// there. It ends as many rows behind them.
const addedFrom = joinedRows / 2

// TestCrashesOfProtectedUploads kills the process at each point of an upload that is added to a
// protected scraper's rows. The call is repeated under its key. In the end each article has one
// row, and those that were there have kept their ids.
func TestCrashesOfProtectedUploads(t *testing.T) {
	t.Parallel()
	points := append([]string{"work.import.before_step:2"}, uploadPoints...) // the first notes
	for _, point := range share(t, points) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			j := newJoined(t)
			j.sendCatalogue()
			if err := j.match(t.Context(), suite.NewKey()); err != nil {
				t.Fatal(err)
			}
			j.awaitRun(j.newest()) // from then on the files are protected
			before := j.articles()
			j.Down(t)
			j.bring(crash.At + "=" + storePoint(point))
			var text strings.Builder
			text.WriteString("gtin,title,added\n")
			for n := addedFrom; n < joinedRows+addedFrom; n++ {
				fmt.Fprintf(&text, "%s,other %d,%d\n", gtin(n), n, n)
			}
			file := j.send("/api/scraper/"+j.scrapers[0]+"/file", url.Values{"format": {"csv"}},
				text.String())
			j.awaitRun(file.JobID)
			if len(j.Deaths) == 0 {
				j.awaitDeath()
				j.awaitRun(file.JobID)
			}
			after := j.articles()
			if n := joinedRows + addedFrom; len(after) != n || len(before) != joinedRows {
				t.Fatalf("%d rows, and %d before", len(after), len(before))
			}
			for n := range joinedRows + addedFrom {
				want := article{GTIN: gtin(n), Title: fmt.Sprint("article ", n), One: fmt.Sprint(n)}
				was, has := before[want.GTIN]
				if !has {
					want.Title, want.One = fmt.Sprint("other ", n), ""
				}
				if n >= addedFrom {
					want.Added = fmt.Sprint(n)
				}
				got := after[want.GTIN]
				if has && got.ID != was.ID {
					t.Fatalf("article %d was row %s, and is %s", n, was.ID, got.ID)
				}
				if got.ID = ""; got != want {
					t.Fatalf("article %d is %+v, want %+v", n, got, want)
				}
			}
			j.checkStored(file.JobID, joinedRows+addedFrom)
		})
	}
}

// article is a row of the first file, and of the one that is added.
type article struct {
	ID                      string `json:"_rowId"`
	GTIN, Title, One, Added string
}

// articles returns the rows of the first file's scraper by their key. No key and no id may be there
// twice.
func (j *joined) articles() map[string]article {
	j.T.Helper()
	rows, seen := map[string]article{}, map[string]bool{}
	text := j.read("/api/scraper/data/export", url.Values{"scraperId": {j.scrapers[0]},
		"format": {"jsonl"}})
	for line := range strings.Lines(text) {
		var row article
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			j.T.Fatalf("%s: %v", line, err)
		}
		if _, twice := rows[row.GTIN]; twice || seen[row.ID] {
			j.T.Fatalf("article %s or row %s is there twice", row.GTIN, row.ID)
		}
		rows[row.GTIN], seen[row.ID] = row, true
	}
	return rows
}
