package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/testkit/api"
)

// due is a call that is due.
type due struct {
	at   time.Time
	call *call
	kind kind
}

// maxDue is how many due calls may wait to be sent: more than in any meaningful measurement.
const maxDue = 1 << 16

// latencies are the latencies of the calls, each from its due time.
type latencies struct {
	kinds  [kinds]histogram
	byCall map[*call]*histogram
	late   histogram // from a call's due time to its sending
	failed map[string]int
}

func newLatencies() *latencies {
	return &latencies{byCall: map[*call]*histogram{}, failed: map[string]int{}}
}

func (l *latencies) merge(other *latencies) {
	for k := range l.kinds {
		l.kinds[k].merge(&other.kinds[k])
	}
	l.late.merge(&other.late)
	for c, h := range other.byCall {
		l.of(c).merge(h)
	}
	for why, n := range other.failed {
		l.failed[why] += n
	}
}

func (l *latencies) of(c *call) *histogram {
	if l.byCall[c] == nil {
		l.byCall[c] = &histogram{}
	}
	return l.byCall[c]
}

// load sends calls at the measure's rates for its time, after an uncounted warm-up, and reports
// their latencies.
func (m *API) load(ctx context.Context, s *service, c *calls, title string,
	report *Report) (*latencies, error) {
	client := &fasthttp.HostClient{Addr: c.host, MaxConns: m.Connections,
		MaxIdemponentCallAttempts: 1,
		ReadTimeout:               time.Minute, WriteTimeout: time.Minute}
	defer client.CloseIdleConnections()
	if _, err := m.send(ctx, client, c, apiWarmUp); err != nil {
		return nil, err
	}
	cpu, err := ownCPU()
	if err != nil {
		return nil, err
	}
	before, err := s.Usage()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	found, err := m.send(ctx, client, c, m.Time)
	if err != nil {
		return nil, err
	}
	took := time.Since(begun).Seconds()
	after, err := s.Usage()
	if err != nil {
		return nil, err
	}
	now, err := ownCPU()
	if err != nil {
		return nil, err
	}
	found.tell(report, c, fmt.Sprintf("%s; %s reads and %s writes a second for %v. Processors: "+
		"service %s, this client %s:", title,
		figure(m.ReadRate), figure(m.WriteRate), m.Time,
		figure((after.CPU-before.CPU).Seconds()/took), figure((now-cpu).Seconds()/took)))
	found.tellFailed(report, title)
	return found, nil
}

func (l *latencies) tell(report *Report, c *calls, title string) {
	table := report.table(title, "call", "calls", "p50, ms", "p90, ms", "p99, ms", "p99.9, ms",
		"longest, ms")
	add := func(name string, h *histogram) {
		if h.n > 0 {
			table.add(name, float64(h.n), millis(h.quantile(0.5)), millis(h.quantile(0.9)),
				millis(h.quantile(0.99)),
				millis(h.quantile(0.999)), millis(h.longest))
		}
	}
	for k := range kinds {
		add(k.String(), &l.kinds[k])
	}
	for _, list := range c.of {
		for i := range list {
			add(list[i].name, l.of(&list[i]))
		}
	}
	add("sent late", &l.late)
}

// tellFailed reports the failed calls as a missed aim: a refusal is fast, and must not count as an
// answer.
func (l *latencies) tellFailed(report *Report, title string) {
	failed := 0
	for _, why := range slices.Sorted(maps.Keys(l.failed)) {
		report.note("%s: %d calls failed: %s", title, l.failed[why], why)
		failed += l.failed[why]
	}
	if failed > 0 {
		report.atMost(title+": calls that failed", float64(failed), 0, "calls")
	}
}

// send makes calls due at fixed intervals and sends them on the connections there are; it returns
// once all are answered.
func (m *API) send(ctx context.Context, client *fasthttp.HostClient, c *calls,
	span time.Duration) (*latencies, error) {
	queue := make(chan due, maxDue)
	begun := time.Now()
	each := make([]*latencies, m.Connections)
	var workers sync.WaitGroup
	for i := range each {
		each[i] = newLatencies()
		workers.Go(func() {
			for d := range queue {
				each[i].send(client, c, d)
			}
		})
	}
	var errs [kinds]error
	var schedules sync.WaitGroup
	for k, rate := range [kinds]float64{reads: m.ReadRate, writes: m.WriteRate} {
		schedules.Go(func() { errs[k] = c.schedule(ctx, queue, kind(k), rate, begun, span) })
	}
	schedules.Wait()
	close(queue)
	workers.Wait()
	all := newLatencies()
	for _, l := range each {
		all.merge(l)
	}
	return all, errors.Join(errs[:]...)
}

// schedule makes the calls of a kind due, in turn.
func (c *calls) schedule(ctx context.Context, queue chan<- due, k kind, rate float64,
	begun time.Time,
	span time.Duration) error {
	runtime.LockOSThread() // required by sleep
	defer runtime.UnlockOSThread()
	list := c.of[k]
	for i := 0; rate > 0; i++ {
		after := time.Duration(float64(i) / rate * float64(time.Second))
		if after >= span {
			return nil
		}
		at := begun.Add(after)
		for early := time.Until(at); early > 0; early = time.Until(at) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			sleep(early)
		}
		select {
		case queue <- due{at: at, call: &list[i%len(list)], kind: k}:
		default:
			return fmt.Errorf("%d calls wait to be sent: the service is far slower than they come",
				maxDue)
		}
	}
	return nil
}

// send sends one call and records how long it took.
func (l *latencies) send(client *fasthttp.HostClient, c *calls, d due) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + c.host + d.call.path)
	request.Header.Set("Authorization", "Bearer "+cmp.Or(d.call.token, c.token))
	if d.kind == writes {
		request.Header.SetMethod(d.call.method)
		request.Header.SetContentType("application/json")
		request.Header.Set("Idempotency-Key", api.NewKey())
		request.SetBodyRaw(d.call.body)
	}
	l.late.add(time.Since(d.at))
	err := client.Do(request, response)
	took := time.Since(d.at)
	switch {
	case err != nil:
		l.failed[d.call.name+": "+err.Error()]++
	case response.StatusCode()/100 != 2:
		l.failed[fmt.Sprintf("%s: status %d", d.call.name, response.StatusCode())]++
	}
	l.of(d.call).add(took)
	l.kinds[d.kind].add(took)
}
