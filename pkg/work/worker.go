package work

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/wake"
)

// Paces of a node. Up to ten nodes together exchange at most once a second, however many items are
// open. A node that has paused that long exchanges as soon as it has a reason.
const (
	lookEvery     = 100 * time.Millisecond
	turnEvery     = time.Second // times the number of nodes that hold work
	lease         = 30 * time.Second
	renewEvery    = 10 * time.Second
	progressEvery = 10 * time.Second
	leaveWithin   = 2 * time.Second
)

// Bounds of one exchange.
const (
	maxReports     = 1000
	maxReportBytes = 256 << 10 // of progress
)

var (
	claimAgain = retry.Backoff{First: time.Second, Most: 5 * time.Second} // if nothing was claimed
	tryAgain   = retry.Backoff{First: 5 * time.Second, Most: time.Hour}   // after failures
)

// Config configures a Worker. Logger, Clock, Metrics and Point may be omitted.
type Config struct {
	Table   Table
	IDs     ids.Source
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
	// Spare returns for how long nothing may be destroyed, because of a restore; nil: no such time.
	Spare func(ctx context.Context) (time.Duration, error)
	// Point is called at named places, for tests that end the process there.
	Point func(name string)
}

// Worker does a node's background work, for all its roles under one lease.
type Worker struct {
	config  Config
	metrics *metrics
	kinds   []*kind // by name
	renewed wake.Signal
	steps   sync.WaitGroup

	mu    sync.Mutex
	tasks map[ids.ID]*task
	until time.Time // of the lease

	// only for Run's goroutine
	next      time.Time // nothing is exchanged before this time
	exchanged time.Time // newest successful exchange
	reported  time.Time // newest report of progress
	nothing   int       // claims in a row without a result
	claimNext time.Time
}

// kind is a Kind at work.
type kind struct {
	Kind
	slots  chan struct{}
	ready  bool   // as of the last turn
	due    bool   // to become due, since this node began to do the kind
	behind string // customer of the item that came last
}

// New makes a worker. Add kinds to it before it runs.
func New(config Config) *Worker {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Point == nil {
		config.Point = func(string) {}
	}
	if config.Spare == nil {
		config.Spare = func(context.Context) (time.Duration, error) { return 0, nil }
	}
	return &Worker{config: config, metrics: newMetrics(config.Metrics),
		renewed: wake.NewSignal(), tasks: map[ids.ID]*task{}}
}

// Add makes the worker do a kind of work.
func (w *Worker) Add(k Kind) {
	k.AtOnce = max(k.AtOnce, 1)
	k.Held = max(k.Held, k.AtOnce)
	k.PerCustomer = cmp.Or(k.PerCustomer, k.Held)
	w.kinds = append(w.kinds, &kind{Kind: k, slots: make(chan struct{}, k.AtOnce)})
	slices.SortFunc(w.kinds, func(a, b *kind) int { return cmp.Compare(a.Name, b.Name) })
}

// Run works until ctx ends, then gives up what it holds. It returns nil.
func (w *Worker) Run(ctx context.Context) error {
	var watch sync.WaitGroup
	watch.Go(func() { w.watchLease(ctx) })
	for {
		if !w.config.Clock.Now().Before(w.next) {
			w.turn(ctx)
		}
		if !clock.Pause(ctx, w.config.Clock, lookEvery) {
			break
		}
	}
	w.steps.Wait() // steps end with ctx
	watch.Wait()
	w.leave(ctx)
	return nil
}

// turn exchanges with the table if there is a reason.
func (w *Worker) turn(ctx context.Context) {
	w.lookAtKinds()
	now := w.config.Clock.Now()
	look := w.config.Table.Look(now, w.readyKinds())
	pause := min(time.Duration(look.Nodes)*turnEvery, renewEvery)
	if w.recur(ctx, look.Missing) {
		w.next = now.Add(pause)
	}
	reports := w.reports(now)
	turn := Turn{Lease: lease, Reports: reports}
	claims := look.Claimable && !now.Before(w.claimNext)
	if claims || len(reports) > 0 {
		turn.Wants = w.wants(reports)
	}
	renews := now.Sub(w.exchanged) >= renewEvery && len(w.config.Table.Held()) > 0
	if len(reports) == 0 && !renews && (!claims || len(turn.Wants) == 0) {
		return
	}
	w.next = now.Add(pause)
	w.config.Point("work.before_exchange")
	if err := w.config.Table.Exchange(ctx, turn); err != nil {
		if ctx.Err() == nil {
			w.config.Logger.Warn("work: a turn failed and is repeated", "error", err)
		}
		return
	}
	w.config.Point("work.after_exchange")
	w.metrics.exchanges.Inc()
	w.exchanged = now
	w.delivered(reports, now)
	started := w.reconcile(ctx, w.config.Table.Held(), now)
	switch {
	case started > 0:
		w.nothing, w.claimNext = 0, time.Time{}
	case claims:
		w.nothing++
		w.claimNext = now.Add(claimAgain.After(w.nothing))
	}
}

// lookAtKinds notes which kinds this node may do now, and ends the steps of the others.
func (w *Worker) lookAtKinds() {
	for _, k := range w.kinds {
		ready := k.Ready == nil || k.Ready()
		k.due = ready && (k.due || (k.AtStart && !k.ready))
		if k.ready && !ready {
			w.mu.Lock()
			for _, t := range w.tasks {
				if t.kind == k {
					t.cancel()
				}
			}
			w.mu.Unlock()
		}
		k.ready = ready
	}
}

func (w *Worker) readyKinds() []string {
	var names []string
	for _, k := range w.kinds {
		if k.ready {
			names = append(names, k.Name)
		}
	}
	return names
}

// recur adds missing or due items of recurring kinds, and reports whether there were any.
func (w *Worker) recur(ctx context.Context, missing []string) (told bool) {
	for _, k := range w.kinds {
		if !k.ready || !k.Recurring || (!k.due && !slices.Contains(missing, k.Name)) {
			continue
		}
		told = true
		err := w.config.Table.Recur(ctx, w.config.IDs.New(), k.Name, k.due)
		if err != nil {
			w.config.Logger.Debug("work: a recurring kind is not in the table yet", "kind", k.Name,
				"error", err)
			return told
		}
		k.due = false
	}
	return told
}

// wants asks for as many items as there is room, counting the room that reports make.
func (w *Worker) wants(reports []Report) []Want {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[*kind]int{}
	for _, t := range w.tasks {
		held[t.kind]++
	}
	for _, r := range reports {
		if t := w.tasks[r.ID]; t != nil && r.End != Held {
			held[t.kind]--
		}
	}
	var wants []Want
	for _, k := range w.kinds {
		if k.ready && held[k] < k.Held {
			wants = append(wants, Want{Kind: k.Name, Most: k.Held, PerCustomer: k.PerCustomer,
				Behind: k.behind})
		}
	}
	return wants
}

// watchLease ends all steps when the lease ends: another node may hold their items from then on.
func (w *Worker) watchLease(ctx context.Context) {
	for {
		w.mu.Lock()
		until, holds := w.until, false
		for _, t := range w.tasks {
			holds = holds || !t.lost
		}
		w.mu.Unlock()
		var over <-chan time.Time
		if holds {
			over = w.config.Clock.After(until.Sub(w.config.Clock.Now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-w.renewed:
		case <-over:
			w.loseAll()
		}
	}
}

// loseAll gives up everything when the lease has ended.
func (w *Worker) loseAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.config.Clock.Now().Before(w.until) {
		return // it was renewed
	}
	for id, t := range w.tasks {
		w.lose(id, t)
	}
	w.metrics.lapsed.Inc()
	w.config.Logger.Warn("work: the lease ended without a turn; other nodes go on")
}

// leave reports what was done, and that any node may continue. It does not take long: unreported
// work is done again.
func (w *Worker) leave(ctx context.Context) {
	if len(w.config.Table.Held()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	w.reported = time.Time{}
	turn := Turn{Lease: lease, Reports: w.reports(w.config.Clock.Now()), Leaving: true}
	if err := w.config.Table.Exchange(ctx, turn); err != nil {
		w.config.Logger.Info("work: this node's lease has to end before others go on", "error", err)
	}
}
