package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// RowQuery says which rows to read. One of the ids is needed.
type RowQuery struct {
	JobID, ScraperID, GroupID string

	LastRun bool     // only those of each scraper's newest run
	Filters string   // JSON, "" for all
	Sort    string   // a field, then asc or desc; "": as stored
	Fields  []string // lists of members, as the API reads them: only these; nil: all
	Without []string // lists of members that are left out; not with Fields
	Limit   int64    // most rows, 0 for all
}

// File describes how rows are written: Format is csv, jsonl, parquet or xlsx.
type File struct {
	Format    string
	BOM       bool // a byte order mark before a csv
	Unguarded bool // csv text that a spreadsheet takes for a formula is not escaped
}

const (
	copyBuffer = 256 << 10
	maxRow     = 64 << 20 // bytes of a row
)

// broken is the error of an answer that ended early.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: the rows broke off: %w", ErrUnreachable, err)
}

// Rows reads rows one after the other. Each is the JSON document as the server sends it, valid
// until the next. It ends with the first error. Like Export, it goes on if the rows break off.
func (c *Client) Rows(ctx context.Context, q RowQuery) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		_, err := c.Export(ctx, q, File{Format: "jsonl"}, lines(func(line []byte) bool {
			return yield(line, nil)
		}))
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// lines visits the lines of whole rows, until it returns false.
type lines func(line []byte) bool

// errEnough ends an export whose reader wants no more.
var errEnough = errors.New("the reader has enough rows")

// Write implements io.Writer.
func (visit lines) Write(rows []byte) (int, error) {
	for line := range bytes.Lines(rows) {
		if !visit(bytes.TrimSuffix(line, []byte{'\n'})) {
			return 0, errEnough
		}
	}
	return len(rows), nil
}

// openRows begins the answer of an export, or of its rest.
func (c *Client) openRows(ctx context.Context, q RowQuery, f File,
	from rest) (*http.Response, error) {
	query := q.values()
	query.Set("format", f.Format)
	for name, value := range map[string]string{"sort": q.Sort, "cursor": from.cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.BOM {
		query.Set("bom", "true")
	}
	if f.Unguarded {
		query.Set("guard", "false")
	}
	for name, list := range map[string][]string{"fields": q.Fields, "without": q.Without} {
		if len(list) > 0 {
			query[name] = list
		}
	}
	for name, n := range map[string]int64{"limit": q.Limit, "skip": from.skip} {
		if n > 0 {
			query.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return c.open(ctx, "/api/scraper/data/export", query)
}

// values are the parameters that select rows.
func (q RowQuery) values() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{"jobId": q.JobID, "scraperId": q.ScraperID,
		"groupId": q.GroupID, "filters": q.Filters} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.LastRun {
		query.Set("isLastRun", "true")
	}
	return query
}

// WhyNone asks why no row matches; "" if the server does not say.
func (c *Client) WhyNone(ctx context.Context, q RowQuery) (string, error) {
	query := q.values()
	query.Set("limit", "1")
	var page Answer[json.RawMessage]
	err := c.get(ctx, "/api/scraper/data", query, &page)
	return page.Reason, err
}
