package steps_test

import (
	"context"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
)

// TestVerdictsTravelWithTheClosing: a run's end says why it is held back, or was not judged.
func TestVerdictsTravelWithTheClosing(t *testing.T) {
	for _, want := range []command.Verdict{{}, {Odd: "few rows"}, {Unjudged: "it took too long"}} {
		l := newLoop(t, 1)
		l.Judge = func(context.Context, *state.Job) (command.Verdict, error) { return want, nil }
		var closed []command.CloseRunPayload
		l.Propose = func(ctx context.Context, p command.Payload) (any, error) {
			if end, is := p.(command.CloseRunPayload); is {
				closed = append(closed, end)
			}
			return l.propose(ctx, p)
		}
		if _, err := l.Close(t.Context(), l.view().Job(l.job)); err != nil {
			t.Fatal(err)
		}
		end := command.CloseRunPayload{Job: l.job, Odd: want.Odd, Unjudged: want.Unjudged}
		if len(closed) != 1 || closed[0] != end {
			t.Errorf("%+v, want %+v", closed, end)
		}
	}
}
