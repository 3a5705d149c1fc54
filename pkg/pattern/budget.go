package pattern

import (
	"context"
	"errors"

	"shoal.dev/shoal/pkg/turns"
)

// ErrExhausted says that matching has cost more than its budget.
var ErrExhausted = errors.New("the patterns take too long on this text")

// checkEvery is how many steps, some 50 ms of them, are made before the context is asked again, and
// others may go first.
const checkEvery = 1_000_000

// Budget is the work that matching may still take, in steps. A step is what four instructions of a
// pattern take for a byte: some 50 ns at worst (BenchmarkWorst). A budget belongs to one goroutine.
type Budget struct {
	ctx   context.Context
	left  int
	check int // what is left when the context is asked next
	err   error
}

// NewBudget is a budget that is exhausted after so many steps, or when the context ends.
func NewBudget(ctx context.Context, steps int) *Budget {
	b := &Budget{}
	b.Reset(ctx, steps)
	return b
}

// Reset makes the budget a new one.
func (b *Budget) Reset(ctx context.Context, steps int) {
	*b = Budget{ctx: ctx, left: steps, check: max(0, steps-checkEvery)}
}

// Left is how many steps are left, negative once the budget is exhausted.
func (b *Budget) Left() int { return b.left }

// Err is why nothing matches any more: ErrExhausted, or the context's error. nil while there is
// something left.
func (b *Budget) Err() error { return b.err }

// Spend takes steps from the budget; false when it is exhausted or the context has ended.
func (b *Budget) Spend(steps int) bool {
	b.left -= steps
	return b.err == nil && (b.left >= b.check || b.look())
}

// look decides whether matching goes on.
func (b *Budget) look() bool {
	switch err := turns.Yield(b.ctx); {
	case err != nil:
		b.err, b.left = err, -1
	case b.left < 0:
		b.err = ErrExhausted
	default:
		b.check = max(0, b.left-checkEvery)
	}
	return b.err == nil
}
