package fetcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// markerCheck is a log that is randomly slow and failing, and that checks each marker as it accepts
// it. It also plays the leader: when it has accepted a page whose chain needs another dispatch, it
// sends that.
type markerCheck struct {
	*stream.Memory
	t *testing.T
	r *rig

	mu  sync.Mutex
	rng *rand.Rand
	// dispatches published, by their first page
	sent     map[model.Unit]bool
	before   map[uint64]map[model.Unit]bool // dispatches published before each marker
	accepted map[model.Unit]bool            // pages in the log
	returned map[uint64]map[uint32]bool     // open tasks of the markers accepted
	last     int                            // chains ended
}

func (l *markerCheck) Publish(ctx context.Context, topic stream.Topic, partition int,
	records ...[]byte) error {
	if topic != stream.Pages {
		return l.Memory.Publish(ctx, topic, partition, records...)
	}
	l.mu.Lock()
	wait, failure := time.Duration(l.rng.IntN(3000))*time.Millisecond, error(nil)
	if l.rng.IntN(4) == 0 {
		records, failure = records[:l.rng.IntN(len(records)+1)], errTest
	}
	late := l.rng.IntN(2) == 0
	l.mu.Unlock()
	if !late {
		pass(wait)
	}
	if err := l.Memory.Publish(ctx, topic, partition, records...); err != nil {
		return err
	}
	for _, record := range records {
		l.accept(record)
	}
	if late {
		pass(wait) // the log has it, but the fetcher does not know
	}
	return failure
}

func (l *markerCheck) accept(record []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	page, marker, err := stream.DecodePages(record)
	if err != nil {
		l.t.Fatal(err)
	}
	if marker != nil {
		l.check(marker)
		return
	}
	if again := l.accepted[page.Unit]; again {
		return
	}
	l.accepted[page.Unit] = true
	switch {
	case page.Last:
		l.last++
	case page.Spent:
		l.dispatchLocked(page.Unit.Seq, page.Next)
	}
}

// check checks the marker against everything sent before it.
func (l *markerCheck) check(marker *model.Marker) {
	open := map[uint32]bool{}
	for _, tasks := range marker.Open {
		if !slices.IsSorted(tasks.Seqs) {
			l.t.Errorf("seqs of %v are not in order", tasks.Job)
		}
		for _, seq := range tasks.Seqs {
			open[seq] = true
		}
	}
	for unit := range l.before[marker.Number] {
		if !l.accepted[unit] && !open[unit.Seq] {
			l.t.Errorf("marker %d calls dispatch %v lost", marker.Number, unit)
		}
	}
	l.returned[marker.Number] = open
}

// dispatchLocked sends a seq that begins at a page.
func (l *markerCheck) dispatchLocked(seq uint32, from *model.Continuation) {
	task := l.r.task(int(seq), fmt.Sprintf("http://h%d.test/%d", seq%5, seq))
	task.Budget, task.From = 1, from
	unit := model.Unit{Seq: seq}
	if from != nil {
		unit.Page = from.Page
	}
	l.sent[unit] = true
	_ = l.Memory.Publish(context.Background(), stream.Tasks, 0, stream.EncodeTask(task))
	if l.rng.IntN(5) == 0 { // again: the second is dropped
		_ = l.Memory.Publish(context.Background(), stream.Tasks, 0, stream.EncodeTask(task))
	}
}

func (l *markerCheck) mark(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before[number] = map[model.Unit]bool{}
	for unit := range l.sent {
		l.before[number][unit] = true
	}
	l.r.publish(0, stream.EncodeMarker(model.Marker{Leader: 1, Number: number}))
}

// However slow and faulty publishing is, a marker names every task whose answer is not in the log
// before it. Every dispatch is answered, even if a seq's next dispatch arrives before the fetcher
// knows that the last one ended.
func TestMarkersMissNothing(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { markersMissNothing(t, seed) })
		})
	}
}

func markersMissNothing(t *testing.T, seed uint64) {
	three, seqs := 3, uint32(30)
	var l *markerCheck
	recipe := paged(model.Pagination{Type: model.URLPageParam, Param: "p", Max: &three})
	recipe.Politeness.IgnoreRobots = true
	_, stop := start(t, 1, recipe, func(r *rig, config *Config) {
		l = &markerCheck{Memory: r.memory, t: t, r: r, rng: rand.New(rand.NewPCG(seed, 0)),
			sent:   map[model.Unit]bool{},
			before: map[uint64]map[model.Unit]bool{}, accepted: map[model.Unit]bool{},
			returned: map[uint64]map[uint32]bool{}}
		config.Log = l
		config.Pace = Pace{Rate: 20, Connections: 2}
		r.web.latency = 100 * time.Millisecond
		r.web.fails("http://h1.test/1", 1, web.Failure{Code: fault.PageConnect, Retry: true})
	})
	defer stop()
	for seq := range seqs {
		l.mu.Lock()
		l.dispatchLocked(seq, nil)
		wait := time.Duration(l.rng.IntN(500)) * time.Millisecond
		l.mu.Unlock()
		if seq%3 == 0 {
			l.mark(uint64(seq))
		}
		pass(wait)
	}
	for n := range uint64(200) {
		l.mark(1000 + n)
		pass(time.Second)
	}
	pass(time.Minute)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != int(seqs) || len(l.accepted) != 3*int(seqs) {
		t.Errorf("%d of %d chains ended, with %d pages", l.last, seqs, len(l.accepted))
	}
	if open, came := l.returned[1199]; !came || len(open) != 0 {
		t.Errorf("the last marker came %v with %v open", came, open)
	}
}
