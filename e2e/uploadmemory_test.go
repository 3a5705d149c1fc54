package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// Files of the greatest size, and those that are tried with each commit.
const (
	largestFile = 199_000_000
	usualFile   = 40_000_000
	// mostForFile is how much memory the whole process takes for a file beyond what it had.
	mostForFile = 64 << 20
)

// TestUploadsTakeLittleMemory uploads a file of each kind of text to a process of its own. It looks
// at the most memory that the process had until all rows were stored.
func TestUploadsTakeLittleMemory(t *testing.T) {
	size := usualFile
	if *scale {
		size = largestFile
	}
	for format, of := range map[string]struct{ kind, head, row string }{
		"csv": {"text/csv", "sku,title,price,text\n", "S%d,Thing %[1]d,%[1]d.50,%s\n"},
		"jsonl": {"application/jsonl", "", `{"sku":"S%d","title":"Thing %[1]d",` +
			`"price":"%[1]d.50","text":%q}` + "\n"},
	} {
		t.Run(format, func(t *testing.T) {
			s := newService(t, newWeb(t, synthweb.Config{}))
			group := suite.Must(s.PutGroup(t.Context(), "files"))(t)
			file := bytes.NewBuffer(make([]byte, 0, size+1_000))
			file.WriteString(of.head)
			rows := 0
			for text := bytes.Repeat([]byte("word "), 60); file.Len() < size; rows++ {
				fmt.Fprintf(file, of.row, rows, text[:rows%len(text)])
			}
			before := suite.Must(s.p.Usage())(t)
			ctx, begin := suite.Within(t, suite.Patience), time.Now()
			answer := suite.Must(s.Do(ctx, "POST", "/api/scraper/group/"+group+"/file-scraper",
				url.Values{"format": {format}, "name": {"large"}}, of.kind, file))(t)
			var made uploadedFile
			err := json.NewDecoder(answer.Body).Decode(&made)
			if err = errors.Join(err, answer.Body.Close()); err != nil {
				t.Fatal(err)
			}
			run := suite.Launched{JobID: made.JobID, ScraperID: made.Scraper.ID}
			suite.Must(s.Follow(ctx, run.JobID, nil))(t)
			job := suite.Must(s.Job(ctx, run))(t)
			after := suite.Must(s.p.Usage())(t)
			t.Logf("%d rows in %v: %d MB, then %d MB at most", rows,
				time.Since(begin).Round(time.Millisecond), before.Bytes>>20, after.PeakBytes>>20)
			if job.State != "COMPLETED" || int(job.ItemsQuantity) != rows {
				t.Errorf("%s with %d of %d rows", job.State, job.ItemsQuantity, rows)
			}
			if taken := after.PeakBytes - before.Bytes; taken > mostForFile {
				t.Errorf("it took %d MB, at most %d", taken>>20, mostForFile>>20)
			}
		})
	}
}
