package api

import (
	"errors"
	"testing"
	"time"
)

// TestRetries: what is limited is waited for as long as that takes, what is unavailable for half a
// minute in all.
func TestRetries(t *testing.T) {
	limited := func(retry time.Duration) error { return &Problem{Status: 429, retryAfter: retry} }
	unable := func(retry time.Duration) error { return &Problem{Status: 503, retryAfter: retry} }
	for name, c := range map[string]struct {
		err    error
		waits  int
		lasted time.Duration
		wait   time.Duration
		again  bool
	}{
		"limited":          {limited(time.Minute), 3, time.Hour, time.Minute, true},
		"limited for long": {limited(3 * time.Minute), 0, 0, 3 * time.Minute, false},
		"limited for ever": {limited(time.Second), maxWaits, 0, 0, false},
		"unavailable":      {unable(0), 5, 20 * time.Second, time.Second, true},
		"unavailable for half a minute": {unable(5 * time.Second), 0, 30 * time.Second,
			5 * time.Second, false},
		"unavailable for longer than it": {unable(time.Minute), 0, 0, time.Minute, false},
		"another problem":                {&Problem{Status: 500}, 0, 0, 0, false},
		"no problem":                     {errors.New("x"), 0, 0, 0, false},
	} {
		if wait, again := retryAfter(c.err, c.waits, c.lasted); wait != c.wait || again != c.again {
			t.Errorf("%s: again %v after %v, want %v after %v", name, again, wait, c.again, c.wait)
		}
	}
}
