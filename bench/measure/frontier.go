package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/testkit/synthweb"
)

// Frontier measures the cost of pending addresses, and how soon fetching resumes after a crash.
type Frontier struct {
	Addresses int    `help:"Pending addresses, in lists of at most 5,000,000." default:"10000000"`
	Hosts     int    `help:"Hosts of the addresses, each with its own domain." default:"1000000"`
	Grouped   bool   `help:"List each host's addresses together, instead of alternating between hosts."`
	Profile   string `help:"Directory for heap profiles of the service: idle, with one list, with all." placeholder:"DIR" type:"path"`
}

// Help returns the help text.
func (*Frontier) Help() string {
	return `Lists are launched on a fresh 'shoal serve' whose web answers so slowly that almost no page is read meanwhile. The live heap
after a collection is read with no list, after the first list and after the last. The first list fills the window, so what
the others add is the cost of addresses beyond it. Then the process is killed and restarted, and the time until the web
sees its first request is measured.

Example: shoal bench frontier --addresses 1000000 --hosts 100000`
}

const (
	longestList      = 5_000_000
	pendingLimit     = 12 // bytes of memory per pending address beyond the window
	frontierLatency  = 5 * time.Minute
	fullWindowWithin = 5 * time.Minute
	fetchedWithin    = 5 * time.Minute
	lookEvery        = 2 * time.Millisecond
)

// Measure measures memory and restart.
func (m *Frontier) Measure(ctx context.Context, on *Bench, report *Report) (err error) {
	if err := positive(map[string]int{"addresses": m.Addresses, "hosts": m.Hosts}); err != nil {
		return err
	}
	pages := (m.Addresses + m.Hosts - 1) / m.Hosts
	config := synthweb.Config{Hosts: m.Hosts, PagesPerHost: pages, PageBytes: []int{3000},
		MinLatency: frontierLatency,
		MaxLatency: frontierLatency}
	w, err := synthweb.Start(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	ops, err := freePort()
	if err != nil {
		return err
	}
	args := []string{"--ops-listen", ops, "--ops-profiles", "--egress-origin",
		w.Pattern() + "=" + w.Addr(),
		"--fetch-timeout", frontierLatency.String()}
	s, err := on.fresh(ctx, nil, nil, args...)
	if err != nil {
		return err
	}
	defer func() {
		s.Kill()
		err = errors.Join(err, os.RemoveAll(s.data))
	}()
	if err := m.memory(ctx, on, s, ops, w, report); err != nil {
		return err
	}
	s, err = m.restart(ctx, on, s, w, args, report)
	return err
}

// frontierState is what a service holds at one moment.
type frontierState struct {
	pending   int
	out       int
	live, rss int64 // bytes
}

// memory launches the lists and reports their cost.
func (m *Frontier) memory(ctx context.Context, on *Bench, s *service, ops string, w *synthweb.Web,
	report *Report) error {
	table := report.table(fmt.Sprintf("Pending addresses over %s hosts:",
		thousands(fmt.Sprint(m.Hosts))), "addresses",
		"under way", "live heap, MB", "resident, MB", "list accepted in, s")
	idle, err := m.look(ctx, s, ops, 0, "idle")
	if err != nil {
		return err
	}
	table.add("0", 0, float64(idle.live)/1e6, float64(idle.rss)/1e6, 0)
	states := []frontierState{idle}
	path := filepath.Join(on.Dir, "list")
	for from := 0; from < m.Addresses; {
		n := min(m.Addresses-from, m.listLength())
		on.Say("frontier: list of %d addresses, %d before", n, from)
		if _, err := writeList(path, n,
			func(i int) string { return m.address(w, from+i) }); err != nil {
			return err
		}
		took, run, err := sendList(ctx, s, path, fmt.Sprintf("from %d", from))
		if err != nil {
			return err
		}
		if run.LinksQueued != n {
			return fmt.Errorf("%d of %d addresses were queued", run.LinksQueued, n)
		}
		from += n
		state, err := m.look(ctx, s, ops, from, fmt.Sprintf("pending-%d", from))
		if err != nil {
			return err
		}
		table.add(thousands(fmt.Sprint(from)), float64(state.out), float64(state.live)/1e6,
			float64(state.rss)/1e6,
			took.Seconds())
		states = append(states, state)
	}
	first, last := states[1], states[len(states)-1]
	if first.out == first.pending {
		report.note("the lists do not fill the window: what an address beyond it costs " +
			"cannot be told")
	} else if last.pending > first.pending {
		report.atMost("memory of a pending address beyond the window",
			max(float64(last.live-first.live)/float64(last.pending-first.pending), 0), pendingLimit,
			"bytes")
	}
	report.note("all of the live heap beyond the idle one's, the window included, is %s "+
		"bytes an address",
		figure(float64(last.live-idle.live)/float64(last.pending)))
	return nil
}

// listLength is the length of each list. There are at least two lists, so that the second shows the
// cost of one more address.
func (m *Frontier) listLength() int { return min(longestList, (m.Addresses+1)/2) }

// address is address number i of the lists.
func (m *Frontier) address(w *synthweb.Web, i int) string {
	host, n := i%m.Hosts, i/m.Hosts
	if m.Grouped {
		pages := (m.Addresses + m.Hosts - 1) / m.Hosts
		host, n = i/pages, i%pages
	}
	return w.URL(host, n)
}

// look waits until dispatching pauses, and then reads what the service holds.
func (m *Frontier) look(ctx context.Context, s *service, ops string, pending int,
	name string) (frontierState, error) {
	state := frontierState{pending: pending}
	admin, err := s.admin(ctx)
	if err != nil {
		return state, err
	}
	ctx, cancel := context.WithTimeout(ctx, fullWindowWithin)
	defer cancel()
	for steady := 0; steady < 5; {
		now, err := admin.Status(ctx)
		if err != nil {
			return state, err
		}
		if steady++; now.Out != state.out || now.Out == 0 && pending > 0 {
			state.out, steady = now.Out, 0
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return state, fmt.Errorf("the window does not become full: %w", err)
		}
	}
	if state.live, err = heap(ctx, ops); err != nil {
		return state, err
	}
	usage, err := s.Usage()
	if err != nil {
		return state, err
	}
	state.rss = usage.Bytes
	if m.Profile != "" {
		err = saveProfile(ctx, ops, "heap?gc=1", filepath.Join(m.Profile, name+".heap"))
	}
	return state, err
}

// restart kills the service and starts it again.
func (m *Frontier) restart(ctx context.Context, on *Bench, s *service, w *synthweb.Web,
	args []string,
	report *Report) (*service, error) {
	on.Say("frontier: kill and restart")
	s.Kill()
	before, err := w.Stats()
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchedWithin)
	defer cancel()
	begun := time.Now()
	again, err := on.serve(ctx, s.data, nil, nil, args...)
	if err != nil {
		return s, err
	}
	ready := time.Since(begun)
	for {
		now, err := w.Stats()
		if err != nil {
			return again, err
		}
		if now.Requests > before.Requests {
			break
		}
		if err := pause(ctx, lookEvery); err != nil {
			return again, fmt.Errorf("nothing is fetched after the restart: %w", err)
		}
	}
	fetched := time.Since(begun)
	usage, err := again.Usage()
	table := report.table("Restart after a kill, with everything pending:",
		"from the start of the process", "seconds")
	table.add("calls are served", ready.Seconds())
	table.add("the web sees the first request", fetched.Seconds())
	report.note("the process had at most %s MB up to then", figure(float64(usage.PeakBytes)/1e6))
	return again, err
}

// pause waits for d. It fails with the context's cause.
func pause(ctx context.Context, d time.Duration) error {
	if !clock.Pause(ctx, clock.System{}, d) {
		return context.Cause(ctx)
	}
	return nil
}

// freePort returns an address of the loopback without a listener.
func freePort() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
