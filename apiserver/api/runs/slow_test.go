package runs_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// trickle sends the beginning of a request and leaves its body open.
func (r *rig) trickle(t *testing.T, path, media, begin string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+
		"%s\r\nContent-Type: %s\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", path, r.Secrets[apitest.User], media,
		len(begin), begin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// One invalid address refuses a list while the rest is still arriving, and nothing of the list is
// kept.
func TestABadAddressIsRefusedWhileTheListComes(t *testing.T) {
	r := start(t)
	for media, c := range map[string]struct{ begin, line string }{
		"text/uri-list": {"# mine\nhttps://shop.test/1\nnonsense\nhttps://shop", "line 3"},
		"application/x-ndjson": {`{"url":"https://shop.test/1"}` + "\n" +
			`{"url":"ftp://shop.test/"}` + "\n{", "line 2"},
	} {
		_, path, _ := strings.Cut(r.stream("bad"), " ")
		answer, err := http.ReadResponse(bufio.NewReader(r.trickle(t, path, media, c.begin)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusBadRequest ||
			!strings.Contains(string(body), `"INVALID_URL"`) ||
			!strings.Contains(string(body), `"field":"`+c.line+`"`) {
			t.Errorf("%s: status %d, %s %v", media, answer.StatusCode, body, err)
		}
	}
	if claims := r.Client.View().ClaimsUnderWay("test"); len(claims) != 0 {
		t.Errorf("claims %v stay", claims)
	}
}

// However many slow bodies one customer sends, large JSON bodies and streams of others are
// accepted. They do not wait until a slow one is refused for its pace.
func TestTricklingBodiesHoldNobodyUp(t *testing.T) {
	r := start(t)
	const lists = 36 // more than are received at once
	var slow []net.Conn
	for i := range lists {
		_, path, _ := strings.Cut(r.stream(fmt.Sprint("slow", i)), " ")
		slow = append(slow, r.trickle(t, path, "text/uri-list",
			strings.Repeat("https://shop.test/1\n", 8_000)))
	}
	for range 3 {
		slow = append(slow,
			r.trickle(t, "/api/scraper/url-list-run", "application/json", `{"name": "`))
	}
	var answered atomic.Int32
	var listening sync.WaitGroup
	for _, c := range slow {
		listening.Go(func() {
			if n, _ := c.Read(make([]byte, 1)); n > 0 {
				answered.Add(1)
			}
		})
	}
	for len(r.Client.View().ClaimsUnderWay("test")) < lists {
		if t.Context().Err() != nil {
			t.Fatal("the calls do not begin")
		}
	}
	r.group = r.NewGroup(t, "bob", "honest")
	urls := make([]string, 90_000) // a body of more than a megabyte
	for i := range urls {
		urls[i] = fmt.Sprint("https://shop.test/", i)
	}
	r.Run(t,
		apitest.Scenario{Name: "large JSON", As: apitest.Other, Do: listPath,
			Body: r.body("urls", urls), Status: 200,
			Has: map[string]any{"linksQueued": len(urls)}},
		apitest.Scenario{Name: "stream", As: apitest.Other, Do: r.stream("streamed"),
			Header: media("text/uri-list"),
			Body:   "https://shop.test/1\n", Status: 200},
	)
	if n := answered.Load(); n > 0 {
		t.Errorf("the others waited until %d slow bodies were refused", n)
	}
	for _, c := range slow {
		_ = c.Close()
	}
	listening.Wait()
}
