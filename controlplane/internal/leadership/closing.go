package leadership

import (
	"context"
	"maps"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds and intervals of closing.
const (
	// maxClosing is how many runs are closed at once. One place is always kept for quick ones.
	maxClosing = 4
	// maxLong is how many of them may take long, maxLongOfOne how many of one customer.
	maxLong      = maxClosing - 1
	maxLongOfOne = maxLong - 1
	// quickPages is how many pages are read quickly.
	quickPages  = 1000
	sparedPause = time.Minute // until a run to be spared is looked at again
)

// closings holds the runs being closed, and those that rest because they could not be closed. It is
// for one goroutine.
type closings struct {
	hands map[ids.ID]closing
	rests map[ids.ID]time.Time
}

// closing is a run being closed, and the result.
type closing struct {
	job    *state.Job
	long   bool
	closed bool
	err    error
}

func newClosings() closings {
	return closings{hands: map[ids.ID]closing{}, rests: map[ids.ID]time.Time{}}
}

// closeRuns closes finished runs, several at a time, since one may take minutes.
func (l *Leadership) closeRuns(ctx context.Context) error {
	l.closeNow.Raise()
	c, ended := newClosings(), make(chan closing, maxClosing)
	var work sync.WaitGroup
	defer work.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.closeNow:
		case <-l.config.Clock.After(c.pause(l.config.Clock.Now())):
		case run := <-ended:
			c.end(run, l.config.Clock.Now())
			if run.err != nil && ctx.Err() == nil {
				l.tellFailed("close", run.err)
			}
		}
		// Results are applied by now, so a run that ended and is still closable is not closed.
		for _, run := range c.take(l.view(), l.dispatcher.Closable(), l.config.Clock.Now()) {
			work.Go(func() {
				run.closed, run.err = l.steps.Close(ctx, run.job)
				ended <- run
			})
		}
	}
}

// pause returns for how long nothing needs a look unless a command asks for it.
func (c *closings) pause(now time.Time) time.Duration {
	pause := sparedPause
	for _, until := range c.rests {
		pause = min(pause, until.Sub(now))
	}
	return pause
}

// end records the result of a run.
func (c *closings) end(run closing, now time.Time) {
	delete(c.hands, run.job.ID)
	switch {
	case run.err != nil:
		c.rests[run.job.ID] = now.Add(failedPause)
	case !run.closed:
		c.rests[run.job.ID] = now.Add(sparedPause)
	}
}

// take takes as many closable runs as there are places for.
func (c *closings) take(view *state.View, closable []ids.ID, now time.Time) (taken []closing) {
	maps.DeleteFunc(c.rests, func(_ ids.ID, until time.Time) bool { return !until.After(now) })
	for len(c.hands) < maxClosing {
		next := c.next(view, closable)
		if next.job == nil {
			break
		}
		c.hands[next.job.ID] = next
		taken = append(taken, next)
	}
	return taken
}

// next returns the oldest closable run, with a free place, of the customer with the fewest runs in
// hand. Without any, its job is nil.
func (c *closings) next(view *state.View, closable []ids.ID) (next closing) {
	var long int
	of, longOf := map[string]int{}, map[string]int{}
	for _, run := range c.hands {
		of[run.job.Customer]++
		if run.long {
			long++
			longOf[run.job.Customer]++
		}
	}
	for _, id := range closable {
		_, inHand := c.hands[id]
		_, rests := c.rests[id]
		job := view.Job(id)
		if inHand || rests || job == nil {
			continue
		}
		run := closing{job: job, long: takesLong(view, job)}
		if run.long && (long == maxLong || longOf[job.Customer] == maxLongOfOne) {
			continue
		}
		if next.job == nil || of[job.Customer] < of[next.job.Customer] {
			next = run
		}
	}
	return next
}

// takesLong says whether closing a run may mean reading many records.
func takesLong(view *state.View, job *state.Job) bool {
	return client.IsJudged(view, job) || job.Pages > quickPages
}
