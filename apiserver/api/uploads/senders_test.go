package uploads_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// dial sends the head of a request and a part of its body.
func (r *rig) dial(t *testing.T, path, head, body string) (*bufio.Reader, net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n"+
		"\r\n%s", path, r.Secrets[apitest.User], head, body); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c), c
}

// mostSent is more than sockets hold that nobody reads. It is far below what the server drops of a
// refused body within 30 s before it cuts the connection.
const mostSent = 8 << 20

// goOn sends a piece of a body again and again: mostSent bytes, or until the connection breaks.
// wait returns the error.
func goOn(t *testing.T, c net.Conn, piece string) (wait func() error) {
	t.Helper()
	var sender sync.WaitGroup
	var err error
	sender.Go(func() {
		for sent := 0; sent < mostSent && err == nil; sent += len(piece) {
			_, err = io.WriteString(c, piece)
		}
	})
	t.Cleanup(func() {
		_ = c.Close()
		sender.Wait()
	})
	return func() error {
		sender.Wait()
		return err
	}
}

// refuses requires an answer with a status and a code.
func refuses(t *testing.T, name string, from *bufio.Reader, status int, code string) {
	t.Helper()
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status || !strings.Contains(string(body), `"`+code+`"`) {
		t.Errorf("%s: %d %s %v", name, answer.StatusCode, body, err)
	}
}

// prefetched exceeds what the server reads before it checks a call.
const prefetched = 64 << 10

// A body without a length, or one that is too long, is refused while it is still being sent. A
// sender that goes on does not find its connection broken before it reads the answer.
func TestLengthsOfUploads(t *testing.T) {
	r := start(t)
	path := "/api/scraper/group/" + r.group.String() + "/file-scraper?name=x&format="
	begun := strings.Repeat("x", prefetched)
	for name, c := range map[string]struct {
		path, head, body, code string
	}{
		"chunked": {path + "csv", "Content-Type: " + csv + "\r\nTransfer-Encoding: chunked",
			"2\r\na\n\r\n", "length_required"},
		"chunked JSON": {strings.TrimSuffix(path, "?name=x&format="),
			"Content-Type: application/json\r\nTransfer-Encoding: chunked", "2\r\n{}\r\n",
			"length_required"},
		"csv": {path + "csv", "Content-Type: " + csv + "\r\nContent-Length: 200000001", begun,
			"payload_too_large"},
		"jsonl": {path + "jsonl", "Content-Type: " + jsonl + "\r\nContent-Length: 200000001",
			begun, "payload_too_large"},
		"xlsx": {path + "xlsx", "Content-Type: " + xlsx + "\r\nContent-Length: 36000001", begun,
			"payload_too_large"},
	} {
		for _, goesOn := range []bool{false, true} {
			from, conn := r.dial(t, c.path, c.head, c.body)
			if goesOn {
				piece := strings.Repeat(c.body, 1+prefetched/len(c.body))
				if err := goOn(t, conn, piece)(); err != nil {
					t.Errorf("%s: the sender is cut off: %v", name, err)
				}
			}
			refuses(t, fmt.Sprint(name, ", goes on: ", goesOn), from,
				http.StatusRequestEntityTooLarge, c.code)
			_ = conn.Close()
		}
	}
}

// A file that has not come in time is refused, whether its sender stands still or trickles.
// Nothing of it is left.
func TestLateUploads(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.PutSettings{Uploads: &client.UploadFigures{Seconds: 1}})
	path := "/api/scraper/group/" + r.group.String() + "/file-scraper?format=csv&name="
	for name, more := range map[string]string{"still": "", "trickle": "x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, conn := r.dial(t, path+name, "Content-Type: "+csv+"\r\nContent-Length: 200000000",
				strings.Repeat("x", prefetched))
			if more != "" {
				goOn(t, conn, more)
			}
			refuses(t, name, from, http.StatusRequestTimeout, "request_timeout")
		})
	}
	t.Cleanup(func() { // after both
		if n := r.files(t); n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}
