package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"shoal.dev/shoal/pkg/fault"
)

// read returns a whole list, or the error that refuses it.
func read(t *testing.T, list addresses) ([]string, error) {
	t.Helper()
	var urls []string
	for {
		given, err := list.next(t.Context())
		if errors.Is(err, io.EOF) {
			return urls, nil
		}
		if err != nil {
			return nil, err
		}
		urls = append(urls, given.url)
	}
}

// A body that breaks off is refused for that, not for its last half line.
func TestLinesBreakOff(t *testing.T) {
	slow := fault.New(fault.UploadTooSlow, "slow")
	body := io.MultiReader(strings.NewReader(`{"url":"https://shop.test/1"}`+"\n{"),
		iotest.ErrReader(slow))
	if urls, err := read(t, newLines(body, JSONLine, maxStreamed)); !errors.Is(err, slow) {
		t.Errorf("read %q, %v", urls, err)
	}
	body = io.MultiReader(strings.NewReader("https://shop.test/1\nhttps://sh"),
		iotest.ErrReader(slow))
	if urls, err := read(t, newLines(body, URILine, maxStreamed)); !errors.Is(err, slow) {
		t.Errorf("read %q, %v", urls, err)
	}
}

// repeated is an endless body of the same line.
type repeated struct {
	line string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		copied := copy(p[n:], r.line[r.at:])
		n, r.at = n+copied, (r.at+copied)%len(r.line)
	}
	return n, nil
}

func TestLinesAreBounded(t *testing.T) {
	for name, line := range map[string]string{"addresses": "https://shop.test/\n",
		"comments": "#\n"} {
		list := newLines(&repeated{line: line}, URILine, maxStreamed)
		list.most = 1_000
		var err error
		for err == nil {
			_, err = list.next(t.Context())
		}
		if fault.CodeOf(err) != fault.ListTooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The fast reader of JSON lines accepts nothing that the careful one refuses or reads differently.
// Both read what a JSON decoder reads.
func FuzzJSONLine(f *testing.F) {
	for _, seed := range []string{`{"url":"https://shop.test/"}`,
		` {"url" : "https:\/\/shop.test/é"} `, `{"url":""}`, `{"url":"a","url":"b"}`,
		`{"url":null}`, `{"URL":"a"}`, `{"url":"a"}{}`, `{"url":"a\ud800"}`, `[]`,
		`{"url":"\u0000"`, `{"url":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		url, err := JSONLine(line)
		if err != nil || len(line) == 0 {
			return
		}
		if careful, err := jsonLine(line); err != nil || careful != url {
			t.Errorf("%q is read as %q, but carefully as %q, %v", line, url, careful, err)
		}
		var want map[string]string
		if err := json.Unmarshal(line, &want); err != nil || len(want) != 1 || want["url"] != url ||
			url == "" {
			t.Errorf("%q is read as %q, but is %v, %v", line, url, want, err)
		}
	})
}

// A list's addresses are those of its lines, however the lines are split and ended.
func FuzzURIList(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf# a\r\nhttps://shop.test/1\r\n\n https://shop.test/2"))
	f.Add([]byte("https://shop.test/1\n\xff\n"))
	f.Add([]byte("#\n\r\n\t\n"))
	f.Add([]byte("https://shop.test/1\rhttps://shop.test/2\r"))
	f.Add([]byte("https://shop.test/1\ta title\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		urls, err := read(t, newLines(bytes.NewReader(body), URILine, maxStreamed))
		again, errAgain := read(t,
			newLines(iotest.OneByteReader(bytes.NewReader(body)), URILine, maxStreamed))
		if (err == nil) != (errAgain == nil) ||
			strings.Join(urls, "\n") != strings.Join(again, "\n") {
			t.Errorf("%q is read as %q, %v, but byte by byte as %q, %v", body, urls, err, again,
				errAgain)
		}
		if err != nil {
			return
		}
		for _, url := range urls {
			if url == "" || url[0] == '#' || strings.TrimSpace(url) != url ||
				strings.ContainsAny(url, "\n\r\t") {
				t.Errorf("%q holds the address %q", body, url)
			}
		}
		// Written plainly and read again, the list is the same.
		plain, err := read(t, newLines(strings.NewReader(strings.Join(urls, "\n")), URILine,
			maxStreamed))
		if err != nil || strings.Join(plain, "\n") != strings.Join(urls, "\n") {
			t.Errorf("%q, written again, is read as %q, %v", urls, plain, err)
		}
	})
}
