package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for n := 200; n > 0; n-- {
		took = append(took, time.Duration(n))
	}
	for of, want := range map[int]time.Duration{50: 101, 99: 199, 100: 200} {
		if got := percentile(took, of); got != want {
			t.Errorf("of %d in 100: %d, want %d", of, got, want)
		}
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("of none: %d", got)
	}
}

// A load makes its calls at its pace, counts failed ones, and ends with its context.
func TestLoad(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	refused := errors.New("refused")
	l := &load{name: "calls", rate: 10_000, call: func(n int) error {
		if n == 100 {
			end()
		}
		if n == 10 {
			return refused
		}
		return nil
	}}
	startLoads(ctx, []*load{l}).Wait()
	if len(l.took) < 11 || l.failed != 1 || !errors.Is(l.tell(time.Hour), refused) {
		t.Errorf("%d calls, %d failed", len(l.took), l.failed)
	}
}

func TestAPIOptions(t *testing.T) {
	if _, err := parseAPIOptions([]string{"-quick"}); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]string{{"-reads", "0"}, {"x"}, {"-keys", "101", "-customers", "1"}} {
		if _, err := parseAPIOptions(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
