package pattern

import (
	"context"
	"errors"

	"shoal.dev/shoal/pkg/turns"
)

// ErrExhausted says that matching exceeded its budget.
var ErrExhausted = errors.New("the patterns take too long on this text")

// checkEvery is the number of steps, some 50 ms, between two checks of the context, at which others
// may go first.
const checkEvery = 1_000_000

// Budget is the work left for matching, in steps. A step takes four instructions of a pattern for a
// byte: some 50 ns at worst (BenchmarkWorst). Only one goroutine may use a budget.
type Budget struct {
	ctx   context.Context
	left  int
	check int // the context is checked when left falls below it
	err   error
}

// NewBudget returns a budget that is exhausted after steps steps, or when the context ends.
func NewBudget(ctx context.Context, steps int) *Budget {
	b := &Budget{}
	b.Reset(ctx, steps)
	return b
}

// Reset makes the budget like new.
func (b *Budget) Reset(ctx context.Context, steps int) {
	*b = Budget{ctx: ctx, left: steps, check: max(0, steps-checkEvery)}
}

// Left returns how many steps are left, negative once the budget is exhausted.
func (b *Budget) Left() int { return b.left }

// Err returns why nothing matches any more: ErrExhausted, or the context's error. It is nil while
// steps are left.
func (b *Budget) Err() error { return b.err }

// Spend takes steps from the budget; false if it is exhausted or the context has ended.
func (b *Budget) Spend(steps int) bool {
	b.left -= steps
	return b.err == nil && (b.left >= b.check || b.look())
}

// look decides whether matching may continue.
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
