package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/synthweb"
)

// uploadedRows is more than a batch of an import has.
const uploadedRows = 5_000

// uploadPoints are where an upload is killed: within its call, around and within the step of its
// import, and while the old rows are removed.
var uploadPoints = []string{
	"raft.before_apply:10", "raft.after_apply:10", "rowstore.before_commit:2",
	"rowstore.after_commit:2",
	"work.import.before_step", "work.import.before_put", "work.import.before_put:3",
	"work.import.after_put:2", "work.import.after_seal", "work.import.after_end",
	"work.import.after_step", "work.remove.before_delete", "work.remove.after_delete",
	"work.remove.before_forget",
}

// TestCrashesOfUploads kills the process at each point of an upload that replaces another one. The
// call is repeated under its key. In the end the new file's rows are there, each once, and no
// others. Every second upload comes in parts.
func TestCrashesOfUploads(t *testing.T) {
	t.Parallel()
	for n, point := range share(t, uploadPoints) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1, PageBytes: []int{2500}})
			args := append(suite.Fast(), "--no-rate-limits")
			c := &crashCase{service: &service{single: newSingle(t, args, web)}}
			c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
			c.bring()
			group := suite.Must(c.PutGroup(t.Context(), "files"))(t)
			first := c.upload("/api/scraper/group/"+group+"/file-scraper",
				url.Values{"format": {"csv"}, "name": {"prices"}}, 0, false)
			c.awaitFile(group, 0)
			c.Down(t)
			c.bring(crash.At + "=" + storePoint(point))
			second := c.upload("/api/scraper/"+first.Scraper.ID+"/file",
				url.Values{"format": {"csv"}}, uploadedRows, n%2 == 1)
			c.awaitFile(group, uploadedRows)
			if len(c.Deaths) == 0 {
				c.awaitDeath()
				c.awaitFile(group, uploadedRows)
			}
			if n := c.inHistogram(second.JobID); n != uploadedRows {
				t.Errorf("%d numbers are in the histogram", n)
			}
		})
	}
}

// inHistogram returns how many numbers the histogram of a run's first field has in total.
func (c *crashCase) inHistogram(job string) (numbers int) {
	c.T.Helper()
	var profile struct {
		Fields []struct{ Histogram []struct{ Count int } }
	}
	text := c.read("/api/scraper/data/profile", url.Values{"jobId": {job}})
	if err := json.Unmarshal([]byte(text), &profile); err != nil || len(profile.Fields) == 0 {
		c.T.Fatalf("%s: %v", text, err)
	}
	for _, part := range profile.Fields[0].Histogram {
		numbers += part.Count
	}
	return numbers
}

// uploadedFile is the answer to an upload.
type uploadedFile struct {
	JobID   string `json:"jobId"`
	Scraper struct {
		ID string `json:"id"`
	} `json:"scraper"`
}

// upload sends numbers from from on: at once, or as a part that a call without a body completes.
func (c *crashCase) upload(path string, query url.Values, from int, inParts bool) uploadedFile {
	c.T.Helper()
	var file strings.Builder
	file.WriteString("n\n")
	for n := range uploadedRows {
		fmt.Fprintf(&file, "%d\n", from+n)
	}
	if !inParts {
		return c.send(path, query, file.String())
	}
	id := suite.NewKey()
	c.survive("send a part", func(ctx context.Context) error {
		answer, err := c.Do(ctx, "PUT", "/api/uploads/"+id, url.Values{"offset": {"0"},
			"length": {fmt.Sprint(file.Len())}}, "application/octet-stream",
			strings.NewReader(file.String()))
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
	query.Set("uploadId", id)
	return c.send(path, query, "")
}

// send sends a csv file, however often the process dies.
func (c *crashCase) send(path string, query url.Values, file string) (made uploadedFile) {
	c.T.Helper()
	key := suite.NewKey()
	c.survive("upload", func(ctx context.Context) error {
		answer, err := c.Again(key).Do(ctx, "POST", path, query, "text/csv",
			strings.NewReader(file))
		if err != nil {
			return err
		}
		err = json.NewDecoder(answer.Body).Decode(&made)
		return errors.Join(err, answer.Body.Close())
	})
	return made
}

// awaitFile waits until the rows of the file that begins with a number are there, each once and no
// others.
func (c *crashCase) awaitFile(group string, from int) {
	c.T.Helper()
	for ctx := suite.Within(c.T, suite.Patience); ; {
		text := c.exported(group)
		seen, lines := map[string]bool{}, 0
		for line := range strings.Lines(text) {
			var row struct{ N string }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				c.T.Fatalf("%s: %v", line, err)
			}
			seen[row.N] = true
			lines++
		}
		switch {
		case lines != len(seen):
			c.T.Fatalf("%d rows, %d different", lines, len(seen))
		case lines == uploadedRows && seen[fmt.Sprint(from)] &&
			seen[fmt.Sprint(from+uploadedRows-1)]:
			return
		case lines != 0 && !(lines == uploadedRows && seen["0"]):
			c.T.Fatalf("%d rows are shown while the file is imported", lines)
		}
		select {
		case <-ctx.Done():
			c.T.Fatalf("%d rows", lines)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// exported returns the rows of a group, or "" if rows were removed during the read. A complete file
// removes those it replaces, and the server cuts off an answer that would lack them.
func (c *crashCase) exported(group string) (text string) {
	c.T.Helper()
	c.survive("export", func(ctx context.Context) (err error) {
		text, err = c.readOnce(ctx, "/api/scraper/data/export",
			url.Values{"groupId": {group}, "format": {"jsonl"}})
		if errors.Is(err, io.ErrUnexpectedEOF) {
			text, err = "", nil
		}
		return err
	})
	return text
}
