// Package lifecycle owns the order in which a process's parts start and stop. It knows nothing of
// what they do.
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
	// Run returns nil after a stop that its context asked for.
	Run func(ctx context.Context) error
	// Ready is closed when the parts behind this one may start; nil: at once.
	Ready <-chan struct{}
	// Idle says that nothing is left for the part to do, once those behind it have stopped. It is
	// asked again and again, for at most Patience, before the part is stopped. Nil: it is stopped
	// at once.
	Idle     func() bool
	Patience time.Duration
}

// none is the index of no part.
const none = -1

// idlePoll is how often Idle is asked.
const idlePoll = 5 * time.Millisecond

// await waits until there is nothing left to do, the part has ended, or its patience is over.
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

// Run starts the parts in order, each once the one before it is ready. It stops them in the reverse
// order when ctx ends or one of them ends by itself. It returns when all have stopped, with what
// went wrong, the first cause first.
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
		// A part is stopped by its turn alone, not by ctx: those behind it stop first.
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
