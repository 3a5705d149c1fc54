package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/retry"
)

// maxRests is how often in a row an export goes on without a row in between.
const maxRests = 10

// resting is the pause before an export goes on.
var resting = retry.Backoff{First: time.Second, Most: longestRetry}

// rest is where an export goes on: the snapshot that its first answer named, and how many of its
// rows are there.
type rest struct {
	cursor string
	skip   int64
}

// Export streams any number of rows to a file, and returns how many bytes it wrote. If a csv or
// jsonl breaks off, it goes on after the last whole row. What a failed call has written is
// incomplete.
func (c *Client) Export(ctx context.Context, q RowQuery, f File, to io.Writer) (int64, error) {
	rows := &wholeRows{to: to, csv: f.Format == "csv",
		apart: f.Format == "csv" || f.Format == "jsonl"}
	var from rest
	for failures := 0; ; failures++ {
		answer, err := c.openRows(ctx, q, f, from)
		if from.cursor != "" && errors.Is(err, errUnsent) && failures < maxRests { // it may restart
			if !clock.Pause(ctx, c.clock, resting.After(failures+1)) {
				return rows.passed, ctx.Err()
			}
			continue
		}
		if err != nil && from.cursor != "" {
			err = fmt.Errorf("the rows broke off, and cannot go on: %w", err)
		}
		if err != nil {
			return rows.passed, err
		}
		from.cursor = answer.Header.Get("Shoal-Cursor")
		rows.begin()
		_, err = io.CopyBuffer(rows, answer.Body, make([]byte, copyBuffer))
		_ = answer.Body.Close() // read-only
		if err == nil {
			err = rows.pass(rows.held)
		}
		if err == nil || rows.failed != nil {
			return rows.passed, err
		}
		if rows.count > from.skip {
			failures = 0
		}
		if from.cursor == "" || c.hasty || failures >= maxRests || ctx.Err() != nil {
			return rows.passed, broken(ctx, err)
		}
		from.skip = rows.count
		c.notice(fmt.Sprintf("%v: going on after %d rows", broken(ctx, err), from.skip))
		if !clock.Pause(ctx, c.clock, resting.After(failures+1)) {
			return rows.passed, ctx.Err()
		}
	}
}

// wholeRows passes whole rows on and counts them. It holds back what may be a part of a row. It
// holds back a csv's header until a row follows: the rest after no rows has the header again.
type wholeRows struct {
	to     io.Writer
	csv    bool
	apart  bool // rows are told apart; otherwise everything is passed on
	count  int64
	passed int64 // bytes
	failed error // of to

	header bool // it has not come yet
	quoted bool // within a csv's quotes, where lines do not end rows
	held   []byte
}

// begin begins an answer.
func (r *wholeRows) begin() {
	r.header, r.quoted, r.held = r.csv && r.count == 0, false, r.held[:0]
}

// Write implements io.Writer.
func (r *wholeRows) Write(part []byte) (int, error) {
	if !r.apart {
		return len(part), r.pass(part)
	}
	end := 0
	for at, b := range part {
		switch {
		case b == '"':
			r.quoted = r.csv && !r.quoted
		case b != '\n' || r.quoted:
		case r.header:
			r.header = false
		default:
			r.count, end = r.count+1, at+1
		}
	}
	if end > 0 {
		if err := r.pass(append(r.held, part[:end]...)); err != nil {
			return 0, err
		}
		r.held = r.held[:0]
	}
	if r.held = append(r.held, part[end:]...); len(r.held) > maxRow {
		r.failed = fmt.Errorf("a row is longer than %d bytes", maxRow)
	}
	return len(part), r.failed
}

// pass passes bytes on.
func (r *wholeRows) pass(part []byte) error {
	var n int
	n, r.failed = r.to.Write(part)
	r.passed += int64(n)
	return r.failed
}
