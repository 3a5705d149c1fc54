package uploads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/api/uploads"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/upload"
)

const uploadID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"

// part is the call that sends a part of a file from an offset on.
func part(name, id string, offset, length int, body string) apitest.Scenario {
	return apitest.Scenario{Name: name, As: apitest.User, Status: 200, Body: body,
		Header: map[string]string{"Content-Type": "application/octet-stream"},
		Do:     fmt.Sprintf("PUT /api/uploads/%s?offset=%d&length=%d", id, offset, length)}
}

// come is the call that tells how much of a file has arrived.
func come(id string, bytes int) apitest.Scenario {
	return apitest.Scenario{Name: "come", As: apitest.User, Do: "GET /api/uploads/" + id,
		Status: 200, Has: map[string]any{"receivedBytes": bytes, "partBytes": upload.PartBytes}}
}

// ends is the call that makes a file of its parts.
func (r *rig) ends(name, id string) apitest.Scenario {
	sc := r.first(name, "csv", csv, "")
	sc.Do += "&uploadId=" + id
	return sc
}

// parts counts the stored parts of all customers' files.
func (r *rig) parts(t *testing.T) int {
	t.Helper()
	page, err := r.blobs.List(t.Context(), blobstore.Parts, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Blobs)
}

// long makes a file of two parts and a bit, with lines across the ends of the parts.
func long() string {
	var all strings.Builder
	all.WriteString("a\n")
	for n := 0; all.Len() < 2*upload.PartBytes+1000; n++ {
		fmt.Fprintf(&all, "%d%s\n", n, strings.Repeat("x", 30_000))
	}
	return all.String()
}

// A file whose parts arrive in any order, some of them twice, equals the original. It is stored
// once, and its parts are removed.
func TestFileInParts(t *testing.T) {
	r := start(t)
	file, size := long(), upload.PartBytes
	send := func(offset int) apitest.Scenario {
		return part("part", uploadID, offset, len(file), file[offset:min(offset+size, len(file))])
	}
	last := send(2 * size)
	last.Has = map[string]any{"receivedBytes": 0}
	missing := refused("not whole", r.ends("prices", uploadID), 400, "invalid_request")
	missing.Has = map[string]any{"errors.0.field": "uploadId"}
	r.Run(t, come(uploadID, 0), missing, last, come(uploadID, 0), send(0), come(uploadID, size),
		send(0), missing, send(size), come(uploadID, len(file)))
	foreign := come(uploadID, 0)
	foreign.As = apitest.Other
	r.Run(t, foreign)
	call := r.ends("prices", uploadID)
	call.Header["Idempotency-Key"] = "one"
	made, again := r.Call(t, call), r.Call(t, call)
	if made.Status != 201 || again.Text("jobId") != made.Text("jobId") || r.parts(t) != 0 {
		t.Fatalf("%s, then %s, and %d parts", made.Body, again.Body, r.parts(t))
	}
	r.imports(t, made.Text("jobId"))
	rows := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data/export?format=jsonl&groupId=" + r.group.String()})
	read := map[string]bool{}
	for line := range strings.Lines(string(rows.Body)) {
		var row struct{ A string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		read[row.A] = true
	}
	lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")[1:]
	for _, line := range lines {
		if !read[line] {
			t.Fatalf("a row of %d is missing: %.20s", len(lines), line)
		}
	}
	if len(read) != len(lines) {
		t.Errorf("%d rows of %d", len(read), len(lines))
	}
}

// Parts that fit no file are refused and not kept.
func TestPartsThatAreRefused(t *testing.T) {
	r := start(t)
	const size = upload.PartBytes
	whole := strings.Repeat("x", size)
	odd := part("", uploadID, 0, 3, "a\n1")
	odd.Header = map[string]string{"Content-Type": "text/csv"}
	reader := part("", uploadID, 0, 3, "a\n1")
	reader.As = apitest.Reader
	for name, c := range map[string]struct {
		call   apitest.Scenario
		status int
		code   string
	}{
		"between parts":   {part("", uploadID, 1, 10, "x"), 400, "invalid_request"},
		"over the next":   {part("", uploadID, size-1, size+1, whole), 400, "invalid_request"},
		"behind the file": {part("", uploadID, size, size, "x"), 400, "invalid_request"},
		"before it":       {part("", uploadID, -size, size, "x"), 400, "invalid_request"},
		"too short":       {part("", uploadID, 0, size+1, "x"), 400, "invalid_request"},
		"too long":        {part("", uploadID, 0, 1, "xx"), 400, "invalid_request"},
		"empty":           {part("", uploadID, 0, 1, ""), 400, "invalid_request"},
		"beyond a part":   {part("", uploadID, 0, size+1, whole+"x"), 413, "payload_too_large"},
		"of a large file": {part("", uploadID, 0, 200_000_001, whole), 413, "payload_too_large"},
		"a short id":      {part("", "short", 0, 1, "x"), 400, "invalid_request"},
		"a path":          {part("", "..%2F..%2Fuploads%2Fbob", 0, 1, "x"), 400, "invalid_request"},
		"dots":            {part("", strings.Repeat(".", 20), 0, 1, "x"), 400, "invalid_request"},
		"no length": {apitest.Scenario{As: apitest.User, Body: "x", Header: map[string]string{
			"Content-Type": "application/octet-stream"},
			Do: "PUT /api/uploads/" + uploadID + "?offset=0"}, 400, "invalid_request"},
		"another type":     {odd, 415, "unsupported_media_type"},
		"a key that reads": {reader, 403, "scope_rejected"},
	} {
		r.Run(t, refused(name, c.call, c.status, c.code))
	}
	body := r.ends("x", uploadID)
	body.Body = "a\n1\n"
	json := apitest.Scenario{As: apitest.User, Body: `{"name":"n","format":"csv","content":"a\n1"}`,
		Do: "POST /api/scraper/group/" + r.group.String() + "/file-scraper?uploadId=" + uploadID}
	r.Run(t, refused("parts and a body", body, 400, "invalid_request"),
		refused("parts and JSON", json, 400, "invalid_request"),
		refused("no parts", r.ends("x", uploadID), 400, "invalid_request"))
	r.Client.Short(t, "voter-1")
	r.Run(t, refused("no space", part("", uploadID, 0, 3, "a\n1"), 503, "out_of_space"))
	if r.parts(t) != 0 || r.files(t) != 0 {
		t.Errorf("%d parts and %d files are kept", r.parts(t), r.files(t))
	}
}

// Files of two lengths do not mix under one id, and neither do parts of two customers.
func TestPartsDoNotMix(t *testing.T) {
	r := start(t)
	other := part("other's", uploadID, 0, 8, "a\nother\n")
	other.As = apitest.Other
	r.Run(t, other, refused("no parts of one's own", r.ends("x", uploadID), 400, "invalid_request"),
		part("one's own", uploadID, 0, 6, "a\nown\n"))
	long := refused("another length", part("", uploadID, 0, 7, "a\nlong\n"), 400, "invalid_request")
	long.Has = map[string]any{"errors.0.field": "length"}
	r.Run(t, long)
	r.imports(t, r.Call(t, r.ends("x", uploadID)).Text("jobId"))
	r.rows(t, "", "own")
	if r.parts(t) != 1 {
		t.Errorf("%d parts are kept", r.parts(t))
	}
}

// Concurrent senders of a part, and concurrent calls that end a file, make one complete file.
func TestPartsAtOnce(t *testing.T) {
	r := start(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { r.Run(t, part("at once", uploadID, 0, 4, "a\n1\n")) })
	}
	all.Wait()
	made := make(chan int, 8)
	end := r.ends("x", uploadID)
	end.Status = 0
	for range cap(made) {
		all.Go(func() { made <- r.Call(t, end).Status })
	}
	all.Wait()
	close(made)
	count := map[int]int{}
	for status := range made {
		count[status]++
	}
	if count[201] != 1 || count[409]+count[400] != cap(made)-1 || r.files(t) != 1 {
		t.Errorf("answered %v, and %d files are kept", count, r.files(t))
	}
}

// A customer has a limit of parts, but may complete files within it.
func TestPartsAreBounded(t *testing.T) {
	r := start(t)
	for n := range upload.MaxParts {
		r.Run(t, part("kept", fmt.Sprintf("%s-%d", uploadID, n), 0, 4, "a\n1\n"))
	}
	other := part("another customer", uploadID, 0, 4, "a\n1\n")
	other.As = apitest.Other
	r.Run(t, other, refused("one more", part("", uploadID, 0, 4, "a\n1\n"), 429,
		"INGEST_CAPACITY"), part("again", uploadID+"-7", 0, 4, "a\n2\n"))
	if made := r.Call(t, r.ends("x", uploadID+"-7")); made.Status != 201 {
		t.Errorf("%d %s", made.Status, made.Body)
	}
	r.Run(t, part("one more", uploadID, 0, 4, "a\n1\n"))
}

// crowded stores an additional part of alice's with each part.
type crowded struct {
	uploads.Blobs
	others int
}

func (c *crowded) Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written,
	error) {
	if c.others > 0 {
		c.others--
		other := key
		other.ID = fmt.Sprintf("another-%d.4.0", c.others)
		if written, err := c.Blobs.Put(ctx, other, strings.NewReader("a\n1\n")); err != nil {
			return written, err
		}
	}
	return c.Blobs.Put(ctx, key, from)
}

// The limit also holds if parts arrive at the same time.
func TestPartsAtOnceAreBounded(t *testing.T) {
	crowd := &crowded{}
	r := start(t, func(config *apiserver.Config) {
		crowd.Blobs = config.Blobs
		config.Blobs = crowd
	})
	for n := range upload.MaxParts - 1 {
		r.Run(t, part("kept", fmt.Sprintf("%s-%d", uploadID, n), 0, 4, "a\n1\n"))
	}
	crowd.others = 1
	r.Run(t, refused("one more", part("", uploadID, 0, 4, "a\n1\n"), 429, "INGEST_CAPACITY"))
	if n := r.parts(t); n != upload.MaxParts {
		t.Errorf("%d parts are kept", n)
	}
}

// A workbook in parts has the limit of a whole workbook, however low that of other files is.
func TestWorkbookInPartsHasItsOwnLimit(t *testing.T) {
	r := start(t)
	sheet := string(book(t, []any{"a"}, []any{1}))
	r.Run(t, apitest.Scenario{Name: "limit", As: apitest.Admin, Status: 200, Body: `{"maxBytes":10}`,
		Do: "PUT /api/admin/customers/alice/upload-limits"},
		part("sheet", uploadID, 0, len(sheet), sheet),
		refused("as csv", r.ends("x", uploadID), 413, "payload_too_large"))
	ends := r.first("x", "xlsx", xlsx, "")
	ends.Do += "&uploadId=" + uploadID
	r.Run(t, ends)
}
