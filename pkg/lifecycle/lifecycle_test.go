package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/lifecycle"
)

// journal notes events in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) part(name string, fail error) lifecycle.Part {
	ready := make(chan struct{})
	return lifecycle.Part{Name: name, Ready: ready, Run: func(ctx context.Context) error {
		j.note("start " + name)
		if fail != nil {
			return fail
		}
		close(ready)
		<-ctx.Done()
		j.note("stop " + name)
		return ctx.Err()
	}}
}

func TestOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	j := &journal{}
	last := lifecycle.Part{Name: "last",
		Run: func(ctx context.Context) error { cancel(); <-ctx.Done(); return nil }}
	if err := lifecycle.Run(ctx, j.part("a", nil), j.part("b", nil), last); err != nil {
		t.Fatal(err)
	}
	if want := []string{"start a", "start b", "stop b", "stop a"}; !slices.Equal(j.lines, want) {
		t.Fatalf("got %v, want %v", j.lines, want)
	}
}

// TestIdle: a busy part is stopped when it is done, or its patience is over.
func TestIdle(t *testing.T) {
	for name, left := range map[string]int{"done": 3, "never done": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				j := &journal{}
				a := j.part("a", nil)
				a.Patience = time.Minute
				a.Idle = func() bool {
					j.note("ask a")
					left--
					return left == 0
				}
				last := lifecycle.Part{Name: "last",
					Run: func(ctx context.Context) error { cancel(); <-ctx.Done(); return nil }}
				began := time.Now()
				if err := lifecycle.Run(ctx, a, last); err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				switch {
				case name == "done" &&
					!slices.Equal(j.lines,
						[]string{"start a", "ask a", "ask a", "ask a", "stop a"}):
					t.Errorf("got %v", j.lines)
				case name != "done" && took != time.Minute:
					t.Errorf("stopped after %v", took)
				}
			})
		})
	}
}

func TestFailureStopsAll(t *testing.T) {
	j := &journal{}
	broken := errors.New("broken")
	err := lifecycle.Run(context.Background(), j.part("a", nil), j.part("b", broken),
		j.part("c", nil))
	if !errors.Is(err, broken) || err.Error() != "b: broken" {
		t.Fatalf("got %v", err)
	}
	if want := []string{"start a", "start b", "stop a"}; !slices.Equal(j.lines, want) {
		t.Fatalf("got %v, want %v", j.lines, want)
	}
}

// TestTheCauseIsToldFirst: the first end is reported first, whatever it caused.
func TestTheCauseIsToldFirst(t *testing.T) {
	for want, end := range map[string]error{"a: broken\nb: lost a": errors.New("broken"),
		"a ended by itself\nb: lost a": nil} {
		over := make(chan struct{})
		a := lifecycle.Part{Name: "a", Run: func(context.Context) error { <-over; return end }}
		b := lifecycle.Part{Name: "b", Run: func(ctx context.Context) error {
			close(over)
			<-ctx.Done()
			return errors.New("lost a")
		}}
		if err := lifecycle.Run(context.Background(), a, b); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
