package export

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime/debug"
)

// readAhead reads the next part while one is processed, on a goroutine that ends with it.
func readAhead(rows Source) Source {
	return func(ctx context.Context) iter.Seq2[[]json.RawMessage, error] {
		return func(yield func([]json.RawMessage, error) bool) {
			reading, cancel := context.WithCancel(ctx)
			parts := make(chan readPart, 1)
			go readParts(reading, rows, parts)
			defer func() {
				cancel()
				for range parts { // until the goroutine has ended
				}
			}()
			for part := range parts {
				if !yield(part.rows, part.err) {
					return
				}
			}
			if err := ctx.Err(); err != nil {
				yield(nil, err)
			}
		}
	}
}

type readPart struct {
	rows []json.RawMessage
	err  error
}

// readParts sends all parts, then closes the channel.
func readParts(ctx context.Context, rows Source, parts chan<- readPart) {
	defer close(parts)
	send := func(part readPart) bool {
		select {
		case parts <- part:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() {
		if value := recover(); value != nil {
			send(readPart{err: fmt.Errorf("export: panic: %v\n%s", value, debug.Stack())})
		}
	}()
	for part, err := range rows(ctx) {
		if !send(readPart{part, err}) || err != nil {
			return
		}
	}
}
