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
	Customer string // "": the service itself
	Args     []byte // as given, at most 4 KiB
	Progress []byte // as the newest step left it; nil before the first
	Epoch    uint64 // number of this holding
	Failures int    // in a row, without progress
}

// MaxProgress is the most bytes of an item's progress.
const MaxProgress = 64 << 10

// Kind is how this node does one kind of work.
type Kind struct {
	Name string // one of Kinds
	// Step takes an item from its progress to the next. It may be cut off anywhere, run again from
	// an earlier progress, and run beside a late step of another owner. What it writes must be the
	// same in all these cases. It ends soon after ctx does, and lasts minutes at most.
	Step func(ctx context.Context, item Item) (Outcome, error)

	AtOnce int // items whose steps run here at the same time; 0: one
	Held   int // the most items that this node holds, up to 1,000; at least AtOnce
	// PerCustomer is the most items of one customer over all nodes; 0: as many as Held.
	PerCustomer int
	Tries       int // failures in a row after which an item is given up; 0: never

	Recurring bool // there is always exactly one item
	// AtStart makes it due whenever a node begins to do the kind. Only for recurring kinds.
	AtStart bool
	Ready   func() bool // whether this node may do it now; nil: always
}

// Outcome is the result of a step: Held continues, Ended is done, Rested waits.
type Outcome struct {
	Progress []byte // where the next step begins, at most MaxProgress
	End      End
	Rest     time.Duration // of Rested
}

// Done ends the item: it leaves the table.
func Done() Outcome { return Outcome{End: Ended} }

// GoOn continues with a step from a progress.
func GoOn(progress []byte) Outcome { return Outcome{Progress: progress} }

// Rest continues with a step from a progress, no sooner than after some time. Nobody holds the item
// until then.
func Rest(progress []byte, rest time.Duration) Outcome {
	return Outcome{Progress: progress, End: Rested, Rest: rest}
}

// GiveUp marks the error of a step that would always fail again. The item is kept for operators to
// see.
func GiveUp(err error) error { return &hopeless{err} }

type hopeless struct{ error }

// Unwrap returns the reason.
func (h *hopeless) Unwrap() error { return h.error }

func isHopeless(err error) bool {
	var h *hopeless
	return errors.As(err, &h)
}
