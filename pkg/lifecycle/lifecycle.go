// Package lifecycle starts and stops the parts of a process in order. It does not know what they
// do.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Part is one part of a process: it works until its context ends, and returns when it has stopped.
type Part struct {
	Name string
	// Run returns nil if its context asked it to stop.
	Run func(ctx context.Context) error
	// Ready is closed when the later parts may start; nil: at once.
	Ready <-chan struct{}
	// Idle reports that the part has nothing left to do, once the later parts have stopped. It is
	// polled, for at most Patience, before the part is stopped. Nil: the part is stopped at once.
	Idle     func() bool
	Patience time.Duration
}

// none means no part.
const none = -1

// idlePoll is how often Idle is polled.
const idlePoll = 5 * time.Millisecond

// await waits until nothing is left to do, the part has ended, or its patience is over.
func (p *Part) await(done <-chan error) {
	if p.Idle == nil {
		return
	}
	over := time.After(p.Patience)
	for !p.Idle() {
		select {
		case <-over:
			return
		case <-time.After(idlePoll):
		}
		if len(done) > 0 {
			return
		}
	}
}

// Run starts the parts in order, each once the previous one is ready. It stops them in reverse
// order when ctx ends or one of them ends on its own. It returns when all have stopped, with the
// errors, the first cause first.
func Run(ctx context.Context, parts ...Part) error {
	type running struct {
		part Part
		stop context.CancelFunc
		done chan error
	}
	var started []running
	ended := make(chan int, len(parts))
	early := none
start:
	for i, part := range parts {
		// A part is stopped in its turn, not by ctx: later parts stop first.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r := running{part: part, stop: cancel, done: make(chan error, 1)}
		started = append(started, r)
		go func() {
			r.done <- part.Run(own)
			ended <- i
		}()
		if part.Ready == nil {
			continue
		}
		select {
		case <-part.Ready:
		case <-ctx.Done():
			break start
		case early = <-ended:
			break start
		}
	}
	if early == none {
		select {
		case <-ctx.Done():
		case early = <-ended:
		}
	}
	var cause, failed error
	for i := len(started) - 1; i >= 0; i-- {
		if early == none && failed == nil {
			started[i].part.await(started[i].done)
		}
		started[i].stop()
		err := <-started[i].done
		wrong := err != nil && !errors.Is(err, context.Canceled)
		switch name := started[i].part.Name; {
		case i == early && !wrong:
			cause = fmt.Errorf("%s ended by itself", name)
		case i == early:
			cause = fmt.Errorf("%s: %w", name, err)
		case wrong:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(cause, failed)
}
