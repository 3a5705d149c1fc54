package steps_test

import (
	"context"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
)

// A list may go on behind the links of its run. Nothing of that is proposed.
func TestNothingBehindARunIsProposed(t *testing.T) {
	const links = 3
	l := newLoop(t, links)
	l.Store = webList{links: 10 * links}
	l.Propose = func(ctx context.Context, payload command.Payload) (any, error) {
		if window, ok := payload.(command.ExtendWindowPayload); ok {
			for _, run := range window.Runs {
				for _, seq := range run.Seqs {
					if seq >= links {
						t.Errorf("link %d of %d is proposed", seq, links)
					}
				}
			}
		}
		return l.propose(ctx, payload)
	}
	l.run(t)
	if job := l.view().Job(l.job); job.Success != links {
		t.Errorf("%d of %d links were read", job.Success, links)
	}
}
