package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// DiffQuery says which two runs of a scraper are compared, and how.
type DiffQuery struct {
	From, To string

	// Lists of members, as the API reads them.
	Key    []string // that identify a row; nil: the server finds them
	Fields []string // that are compared; nil: all of the rows' own members
}

// RunDiff is the summary of a comparison.
type RunDiff struct {
	Key     []string `json:"key"`
	Summary struct {
		Added     int64 `json:"added"`
		Removed   int64 `json:"removed"`
		Changed   int64 `json:"changed"`
		Unchanged int64 `json:"unchanged"`
	} `json:"summary"`
}

// RowChange is a row that differs between two runs. Before is null if it was added, and After if it
// was removed.
type RowChange struct {
	Change  string          `json:"change"`
	Changed []string        `json:"changed"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
}

func (q DiffQuery) values(more ...string) url.Values {
	values := url.Values{"from": {q.From}, "to": {q.To}}
	for name, list := range map[string][]string{"key": q.Key, "fields": q.Fields} {
		if len(list) > 0 {
			values[name] = list
		}
	}
	for i := 0; i < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return values
}

const diffPath = "/api/scraper/data/diff"

// MaxChanges is how many changes one answer has at most.
const MaxChanges = maxCursorPage

// Diff counts the differences of two runs. The answer's JSON has at most limit of them.
func (c *Client) Diff(ctx context.Context, q DiffQuery, limit int) (diff Answer[RunDiff],
	err error) {
	err = c.within(30*time.Minute).get(ctx, diffPath, q.values("limit", strconv.Itoa(limit)), &diff)
	return diff, err
}

// Changes reads the differences, one row after the other. It ends with the first error.
func (c *Client) Changes(ctx context.Context, q DiffQuery) iter.Seq2[RowChange, error] {
	return func(yield func(RowChange, error) bool) {
		answer, err := c.openDiff(ctx, q, "jsonl")
		if err != nil {
			yield(RowChange{}, err)
			return
		}
		defer func() { _ = answer.Body.Close() }() // read-only
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(make([]byte, 0, copyBuffer), 2*maxRow)
		for lines.Scan() {
			var change RowChange
			if err := json.Unmarshal(lines.Bytes(), &change); err != nil {
				yield(change, fmt.Errorf("a change: %w", err))
				return
			}
			if !yield(change, nil) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(RowChange{}, fmt.Errorf("a change is longer than %d bytes", 2*maxRow))
		} else if err != nil {
			yield(RowChange{}, broken(ctx, err))
		}
	}
}

// ExportDiff writes the differences as csv or jsonl.
func (c *Client) ExportDiff(ctx context.Context, q DiffQuery, format string, to io.Writer) error {
	answer, err := c.openDiff(ctx, q, format)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	if _, err := io.CopyBuffer(to, answer.Body, make([]byte, copyBuffer)); err != nil {
		return broken(ctx, err)
	}
	return nil
}

func (c *Client) openDiff(ctx context.Context, q DiffQuery, format string) (*http.Response,
	error) {
	return c.open(ctx, diffPath, q.values("format", format))
}
