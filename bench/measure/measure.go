// Package measure owns what `shoal bench` measures: one type per measure, whose fields are its
// flags, and the report that all of them fill. It measures the product unchanged, without hooks.
// The whole service runs as processes of the binary itself. A part of it runs as its packages.
//
// It does not compare with other software: package bench does that, on the page of bench/page.
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
	// Measure measures, and adds the results to the report.
	Measure(ctx context.Context, on *Bench, report *Report) error
}

// Bench is a measure's environment.
type Bench struct {
	Program string // the product's binary; services and webs are processes of it
	Dir     string // for the measure's files; the caller removes it
	// Say reports progress.
	Say func(format string, args ...any)
}

// ErrFlags is wrapped by errors of flags out of range.
var ErrFlags = errors.New("out of range")

// positive checks flags that must be above 0.
func positive[N int | time.Duration](flags map[string]N) error {
	for name, value := range flags {
		if value <= 0 {
			return fmt.Errorf("--%s: %w: want more than 0", name, ErrFlags)
		}
	}
	return nil
}

// notNegative checks flags that may be 0.
func notNegative[N int | float64 | time.Duration](flags map[string]N) error {
	for name, value := range flags {
		if !(value >= 0) { // false for NaN
			return fmt.Errorf("--%s: %w: want 0 or more", name, ErrFlags)
		}
	}
	return nil
}

// directory makes a directory for the measure.
func (b *Bench) directory(name string) (string, error) {
	dir, err := os.MkdirTemp(b.Dir, name)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	return dir, nil
}
