package e2e

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/streamtest"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

var topics = []stream.Topic{stream.Tasks, stream.Pages, stream.Receipts}

// TestTheLogMayLoseRecords drops some records of each topic throughout a run. With markers alone
// the run must be exact.
func TestTheLogMayLoseRecords(t *testing.T) {
	t.Parallel()
	// A dispatch has five attempts, however many pages its chain has: more losses might use them
	// up.
	drops := map[stream.Topic]float64{stream.Tasks: 0.05, stream.Pages: 0.02, stream.Receipts: 0.1}
	lost := map[stream.Topic]*atomic.Int64{stream.Tasks: {}, stream.Pages: {}, stream.Receipts: {}}
	t.Run("of", func(t *testing.T) {
		for _, topic := range topics {
			for seed := range uint64(*losses) {
				t.Run(fmt.Sprintf("%v/%d", topic, seed), func(t *testing.T) {
					t.Parallel()
					c := newLossy(t, seed)
					c.log.Set(topic, streamtest.Faults{Drop: drops[topic]})
					c.finish(c.order.Launch(t))
					lost[topic].Add(c.log.Lost(topic))
				})
			}
		}
	})
	for _, topic := range topics {
		if lost[topic].Load() == 0 {
			t.Errorf("no record of %v was lost: nothing is shown", topic)
		}
	}
}

// TestTheLogMayRepeatRecords repeats records of all topics, including late ones.
func TestTheLogMayRepeatRecords(t *testing.T) {
	for seed := range uint64(*losses) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := newLossy(t, seed)
			for _, topic := range topics {
				c.log.Set(topic, streamtest.Faults{Repeat: 0.1})
			}
			c.finish(c.order.Launch(t))
		})
	}
}

// TestTheLogMayVanish loses every record of one topic, or of all, several times in the middle of a
// run.
func TestTheLogMayVanish(t *testing.T) {
	t.Parallel()
	for name, wiped := range map[string][]stream.Topic{
		"tasks": {stream.Tasks}, "pages": {stream.Pages}, "receipts": {stream.Receipts},
		"all": topics,
	} {
		for seed := range uint64(*losses) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				c := newLossy(t, seed)
				run := c.order.Launch(t)
				// Each loss costs every dispatch that is out one of its five attempts.
				for _, pages := range []int64{1, 60, 120} {
					far := func(p suite.Progress) bool { return p.TotalRequests >= pages }
					last := suite.Must(c.Follow(suite.Within(t, suite.Patience), run.JobID, far))(t)
					if last.State == "RUNNING" {
						c.vanish(run, wiped)
					}
				}
				c.finish(run)
			})
		}
	}
}

// lossyRun is a run over a log with faults.
type lossyRun struct {
	*cluster
	t     *testing.T
	web   *synthweb.Web
	order suite.Order
}

func newLossy(t *testing.T, seed uint64) *lossyRun {
	t.Helper()
	config, links := crashWeb(seed)
	web := newWeb(t, config)
	c := newCluster(t, web, seed)
	c.fill(t, suite.Plenty)
	l := &lossyRun{cluster: c, t: t, web: web}
	urls := slices.Collect(web.URLs(links))
	if seed%2 == 0 {
		l.order = suite.ProductOrder(c.Client, urls)
	} else {
		l.order = suite.ListingOrder(c.Client, urls, suite.NextLink())
	}
	return l
}

// vanished is how many new records, including markers, a vanishing topic loses besides those that
// it holds.
const vanished = 10

// vanish loses what the topics hold and, for a while, new records. Markers keep coming as long as
// the run is open.
func (l *lossyRun) vanish(run suite.Launched, wiped []stream.Topic) {
	l.t.Helper()
	lost := func() (n int64) {
		for _, topic := range wiped {
			n += l.log.Lost(topic)
		}
		return n
	}
	enough := lost() + vanished
	for _, topic := range wiped {
		l.log.Wipe(topic)
		l.log.Set(topic, streamtest.Faults{Drop: 1})
	}
	for ctx := suite.Within(l.t, suite.Patience); lost() < enough; {
		select {
		case <-ctx.Done():
			l.t.Fatal("nothing is lost: the run stands still")
		case <-time.After(5 * time.Millisecond):
		}
		if job := suite.Must(l.Job(ctx, run))(l.t); model.JobState(job.State).Final() {
			break // the run ended before the loss began
		}
	}
	for _, topic := range wiped {
		l.log.Set(topic, streamtest.Faults{})
	}
}

// finish waits for the run's end and makes the recount.
func (l *lossyRun) finish(run suite.Launched) {
	t := l.t
	t.Helper()
	reported := suite.Must(l.Report(suite.Within(t, suite.Patience), run))(t)
	suite.CheckWallet(t, l.Client)
	lost := fmt.Sprintf("lost %d tasks, %d pages, %d receipts", l.log.Lost(stream.Tasks),
		l.log.Lost(stream.Pages),
		l.log.Lost(stream.Receipts))
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	reported.Records = suite.Must(readRecords(t.Context(), l.data, run.JobID))(t)
	sum := suite.Check(t, recount.Run{Web: l.web, URLs: l.order.URLs,
		Pagination: l.order.Pagination, Price: suite.PlainPrice,
		Free: suite.FreeGrant, Lossy: true, MaxConnections: clusterPace.Connections}, reported)
	t.Logf("%s; %v", lost, sum)
}
