package uploads_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/api/uploads"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/upload"
)

// held is a blob store whose first files wait for let before they are written.
type held struct {
	uploads.Blobs
	begun, let chan struct{}
	count      atomic.Int64
}

// Put implements uploads.Blobs.
func (h *held) Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written,
	error) {
	if h.count.Add(1) <= upload.MaxJSONBodies {
		h.begun <- struct{}{}
		<-h.let
	}
	return h.Blobs.Put(ctx, key, from)
}

// The service works on eight JSON uploads at once. It refuses a ninth, but no plain files. Uploads
// that are still arriving do not count, so slow senders block nobody.
func TestJSONUploadsAtATime(t *testing.T) {
	blobs := &held{begun: make(chan struct{}), let: make(chan struct{})}
	r := start(t, func(config *apiserver.Config) {
		blobs.Blobs = config.Blobs
		config.Blobs = blobs
	})
	path := "/api/scraper/group/" + r.group.String() + "/file-scraper"
	body := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"format":"csv","content":"a\n1%s"}`, name,
			strings.Repeat("1", prefetched))
	}
	begin := func(name string) (*bufio.Reader, func()) {
		whole := body(name)
		answer, c := r.dial(t, path, fmt.Sprintf(
			"Content-Type: application/json\r\nContent-Length: %d", len(whole)),
			whole[:len(whole)-1])
		return answer, func() {
			t.Helper()
			if _, err := c.Write([]byte("}")); err != nil {
				t.Fatal(err)
			}
		}
	}
	status := func(answer *bufio.Reader) int {
		t.Helper()
		response, err := http.ReadResponse(answer, nil)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	var sent [upload.MaxJSONBodies]*bufio.Reader
	for n := range sent {
		begin(fmt.Sprintf("slow %d", n)) // and never ends
		var end func()
		sent[n], end = begin(fmt.Sprint(n))
		end()
		select {
		case <-blobs.begun:
		case <-time.After(time.Minute):
			t.Fatal("an upload has no place beside slow senders")
		}
	}
	ninth := apitest.Scenario{Name: "the ninth", As: apitest.User, Do: "POST " + path,
		Body: body("x")}
	r.Run(t, refused("the ninth", ninth, 429, "INGEST_CAPACITY_GLOBAL"))
	r.Run(t, r.first("file", "csv", csv, "a\n1\n"))
	close(blobs.let)
	for _, answer := range sent {
		if got := status(answer); got != 201 {
			t.Errorf("an upload that had a place: %d", got)
		}
	}
	ninth.Status = 201
	r.Run(t, ninth)
}
