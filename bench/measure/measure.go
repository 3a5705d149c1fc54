// Package measure owns what `shoal bench` measures: one type a measure, whose fields are its flags,
// and the report that all of them fill. What is measured is the product as it is, with no hooks for
// it. Where the whole service is meant it runs as processes of the binary itself, and where a part
// is, as its packages.
//
// It does not compare with others' software: bench itself does that, on the page of bench/page.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Measure is one subcommand of `shoal bench`. Its exported fields are flags.
type Measure interface {
	// Measure measures, and adds what it found to the report.
	Measure(ctx context.Context, on *Bench, report *Report) error
}

// Bench is where a measure runs.
type Bench struct {
	Program string // the product's binary; services and webs are processes of it
	Dir     string // for what the measure writes; the caller removes it
	// Say tells people how far the measure is.
	Say func(format string, args ...any)
}

// ErrFlags is wrapped by the error of a flag that is out of its range.
var ErrFlags = errors.New("out of range")

// positive checks flags that have to be above 0.
func positive[N int | time.Duration](flags map[string]N) error {
	for name, value := range flags {
		if value <= 0 {
			return fmt.Errorf("--%s: %w: want more than 0", name, ErrFlags)
		}
	}
	return nil
}

// notNegative checks flags of which 0 has a meaning.
func notNegative[N int | float64 | time.Duration](flags map[string]N) error {
	for name, value := range flags {
		if !(value >= 0) { // NaN is neither
			return fmt.Errorf("--%s: %w: want 0 or more", name, ErrFlags)
		}
	}
	return nil
}

// directory makes one of the measure's own.
func (b *Bench) directory(name string) (string, error) {
	dir, err := os.MkdirTemp(b.Dir, name)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	return dir, nil
}
