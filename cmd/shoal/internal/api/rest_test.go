package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"shoal.dev/shoal/pkg/clock"
)

// cutting is a transport that plays an export whose answers break off after so many bytes each. The
// last one is whole.
type cutting struct {
	rows   []string // each with its end; a csv's first is the header
	csv    bool
	cursor string
	cuts   []int
	asked  []string // skip of each call
	gone   bool     // rows are removed after the first answer
	away   int      // calls after the first that find no server
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	skip, cursor := r.URL.Query().Get("skip"), r.URL.Query().Get("cursor")
	if len(c.asked) > 0 && c.away > 0 {
		c.away--
		return nil, errors.New("connection refused")
	}
	c.asked = append(c.asked, skip)
	answer := &http.Response{StatusCode: 200, Request: r, Header: http.Header{}}
	if first := len(c.asked) == 1; first != (cursor == "") || !first && cursor != c.cursor ||
		!first && c.gone {
		answer.StatusCode = 400
		answer.Body = io.NopCloser(strings.NewReader(`{"code":"invalid_cursor"}`))
		return answer, nil
	}
	answer.Header.Set("Shoal-Cursor", c.cursor)
	n, _ := strconv.Atoi(skip)
	if n > 0 && c.csv {
		n++
	}
	body := strings.Join(c.rows[n:], "")
	answer.Body = io.NopCloser(iotest.HalfReader(strings.NewReader(body)))
	if i := len(c.asked) - 1; i < len(c.cuts) {
		answer.Body = io.NopCloser(io.MultiReader(
			iotest.HalfReader(strings.NewReader(body[:min(c.cuts[i], len(body))])), breaks{}))
	}
	return answer, nil
}

// An export that breaks off anywhere, and again, ends up as if it never had.
func TestExportGoesOn(t *testing.T) {
	for format, rows := range map[string][]string{
		"csv":   {"\ufeffa,b\n", "1,\"x\n\"\"\n\"\n", "\"\"\n", "2,\n", "\"\n\",\"\"\"\"\n"},
		"jsonl": {"{\"a\":1}\n", "{}\n", "{\"b\":\"\\\"\"}\n", "{\"c\":\"x\"}\n"}} {
		whole := strings.Join(rows, "")
		for cut := range len(whole) + 1 {
			synctest.Test(t, func(t *testing.T) {
				web := &cutting{rows: rows, csv: format == "csv", cursor: "c",
					cuts: []int{cut, rand.IntN(len(whole)), rand.IntN(5)}, away: rand.IntN(4)}
				var got bytes.Buffer
				n, err := export(web, format, &got)
				if err != nil || got.String() != whole || n != int64(len(whole)) {
					t.Errorf("%s cut at %v: %d bytes, %v: %q", format, web.cuts, n, err, &got)
				}
				if web.csv {
					return
				}
				web.asked, got = nil, bytes.Buffer{}
				for row, err := range clientOf(web).Rows(t.Context(), RowQuery{JobID: "j"}) {
					if got.Write(append(bytes.Clone(row), '\n')); err != nil {
						t.Error(err)
					}
				}
				if got.String() != whole {
					t.Errorf("rows cut at %v: %q", web.cuts, &got)
				}
			})
		}
	}
}

// A reader of rows may stop at any of them.
func TestRowsEnd(t *testing.T) {
	web := &cutting{rows: []string{"{\"a\":1}\n", "{\"a\":2}\n"}}
	for row, err := range clientOf(web).Rows(t.Context(), RowQuery{JobID: "j"}) {
		if string(row) != `{"a":1}` || err != nil {
			t.Errorf("%s, %v", row, err)
		}
		break
	}
}

func clientOf(web http.RoundTripper) *Client {
	client := New("http://a.example", "", clock.System{}, nil)
	client.http.Transport = web
	return client
}

func export(web http.RoundTripper, format string, to io.Writer) (int64, error) {
	return clientOf(web).Export(context.Background(), RowQuery{JobID: "j"}, File{Format: format},
		to)
}

// An export that cannot go on fails. So does one that never gets further, and a file that nothing
// can be written to, at once.
func TestExportThatCannotGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		web   cutting
		to    io.Writer
		tries int
		code  string
	}{
		"a server of before": {cutting{cuts: []int{9}}, io.Discard, 1, ""},
		"rows that are gone": {cutting{cursor: "c", cuts: []int{9}, gone: true}, io.Discard, 2,
			"invalid_cursor"},
		"no row for ever": {cutting{cursor: "c", cuts: make([]int, 99)}, io.Discard,
			maxRests + 1, ""},
		"a server that stays away": {cutting{cursor: "c", cuts: []int{9}, away: 99}, io.Discard, 1,
			"cannot go on"},
		"a file that is full": {cutting{cursor: "c"}, full{}, 1, "full"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.web.rows = []string{"{\"a\":1}\n", "{\"a\":2}\n"}
			_, err := export(&c.web, "jsonl", c.to)
			if err == nil || len(c.web.asked) != c.tries || !strings.Contains(err.Error(), c.code) {
				t.Errorf("%s: %v after the calls %q", name, err, c.web.asked)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }
