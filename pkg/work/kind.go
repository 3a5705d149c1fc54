package work

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// Item is a piece of work that this node holds.
type Item struct {
	ID       ids.ID
	Kind     string
	Customer string // "": the service's own
	Args     []byte // as they were given, at most 4 KiB
	Progress []byte // as the newest step left it, nil before the first
	Epoch    uint64 // the number of its holding
	Failures int    // in a row, without progress
}

// MaxProgress bounds an item's progress, in bytes.
const MaxProgress = 64 << 10

// Kind says how this node does one kind of work.
type Kind struct {
	Name string // one of Kinds
	// Step takes an item on, from its progress to the next. It may be cut off anywhere, run again
	// from an earlier progress, and run beside a late step of another owner. What it writes has to
	// come to the same then. It ends soon after ctx does, and lasts minutes at most.
	Step func(ctx context.Context, item Item) (Outcome, error)

	AtOnce int // items whose steps run here at once; 0: one
	Held   int // items that this node holds, at most 1,000; no fewer than AtOnce
	// PerCustomer is how many items of one customer all nodes together hold; 0: as many as Held.
	PerCustomer int
	Tries       int // failures in a row after which an item is given up; 0: it never is

	Recurring bool // there is one item of it, always
	// AtStart has it come due whenever a node begins to do the kind. Of recurring kinds alone.
	AtStart bool
	Ready   func() bool // whether this node may do it now; nil: always
}

// Outcome is what a step came to: Held goes on, Ended is done, Rested waits.
type Outcome struct {
	Progress []byte // where the next step begins, at most MaxProgress
	End      End
	Rest     time.Duration // of Rested
}

// Done ends the item: it leaves the table.
func Done() Outcome { return Outcome{End: Ended} }

// GoOn has the next step begin at a progress.
func GoOn(progress []byte) Outcome { return Outcome{Progress: progress} }

// Rest has the next step begin at a progress, and no sooner than after some time. Until then nobody
// holds the item.
func Rest(progress []byte, rest time.Duration) Outcome {
	return Outcome{Progress: progress, End: Rested, Rest: rest}
}

// GiveUp is the error of a step that would fail again whatever happens. The item is kept for
// operators to see.
func GiveUp(err error) error { return &hopeless{err} }

type hopeless struct{ error }

// Unwrap is the reason.
func (h *hopeless) Unwrap() error { return h.error }

func isHopeless(err error) bool {
	var h *hopeless
	return errors.As(err, &h)
}
