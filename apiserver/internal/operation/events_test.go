package operation

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// firing is a clock whose every timer is due at once.
type firing struct{ clock.Clock }

func (firing) After(time.Duration) <-chan time.Time {
	due := make(chan time.Time, 1)
	due <- time.Time{}
	return due
}

// An idle stream pings, and so finds out that its client has gone.
func TestWaitPings(t *testing.T) {
	reader, writer := io.Pipe()
	to := &EventWriter{w: bufio.NewWriter(writer), clock: firing{}}
	ended := make(chan error, 1)
	go func() { ended <- to.Wait(context.Background(), nil, nil) }()
	got := make([]byte, len(": ping\n\n"))
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != ": ping\n\n" {
		t.Fatalf("%q %v", got, err)
	}
	gone := errors.New("gone")
	_ = reader.CloseWithError(gone) // never fails
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("the wait ended with %v", err)
	}
}
