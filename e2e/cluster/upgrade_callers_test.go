//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/synthweb"
)

// uploadAcross stops an API server in the middle of receiving a list. The server accepts the rest,
// and answers.
func (u *upgrade) uploadAcross(n *cluster.Node) error {
	r := <-u.next
	urls := r.o.URLs
	list, send := io.Pipe()
	launched := make(chan error, 1)
	go func() {
		direct := r.who
		direct.Server, direct.HTTP = n.Server(), u.c.HTTP()
		var err error
		r.run, err = direct.RunList(u.ctx, r.query, list)
		_ = list.CloseWithError(io.ErrClosedPipe) // a sender must not wait any longer
		launched <- err
	}()
	half := strings.Join(urls[:uploadPages/2], "\n") + "\n"
	if _, err := io.WriteString(send, half); err != nil {
		return errors.Join(fmt.Errorf("upload: %w", err), <-launched)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- n.Stop(stopLimit) }()
	err := u.balancer.seesNot(u.ctx, n)
	if err == nil {
		_, err = io.WriteString(send, strings.Join(urls[uploadPages/2:], "\n"))
	}
	err = errors.Join(err, send.Close(), <-launched, <-stopped)
	if err == nil && r.run.LinksQueued != uploadPages {
		err = fmt.Errorf("upload: %d addresses queued, want %d", r.run.LinksQueued, uploadPages)
	}
	return err
}

// apart requires that one fetcher at a time uses a host: it sends a request only once all requests
// by others are answered.
func apart(t *testing.T, web *synthweb.Web) {
	t.Helper()
	last := map[string]synthweb.Request{} // by host
	for r := range web.Requests() {
		before, known := last[r.Host]
		if known && before.From != r.From && (before.End.IsZero() || before.End.After(r.Start)) {
			t.Errorf("%v asks %s at %v, before %v has its answer (%v)", r.From, r.Host, r.Start,
				before.From, before.End)
		}
		if !known || before.From != r.From || r.End.After(before.End) {
			last[r.Host] = r
		}
	}
}

// callers are the calls that clients make all the time.
func (u *upgrade) callers() map[string]func(ctx context.Context, who suite.Client, n int) error {
	return map[string]func(context.Context, suite.Client, int) error{
		"read": func(ctx context.Context, who suite.Client, _ int) error {
			_, err := who.Wallet(ctx)
			return err
		},
		"history": func(ctx context.Context, _ suite.Client, _ int) error {
			r := u.newest()
			_, err := r.who.Job(ctx, r.run)
			return err
		},
		"rows": func(ctx context.Context, _ suite.Client, _ int) error {
			r := u.newest()
			return r.who.Call(ctx, http.MethodGet, "/api/scraper/data",
				url.Values{"jobId": {r.run.JobID}, "limit": {"10"}}, nil, nil)
		},
		"change": func(ctx context.Context, who suite.Client, n int) error {
			_, err := who.PutGroup(ctx, fmt.Sprintf("group %d", n))
			return err
		},
		"key": useNewKey,
		"stream": func(ctx context.Context, _ suite.Client, n int) error {
			// A stream may end at any message; the client reconnects, as its protocol says.
			r := u.newest()
			_, err := r.who.Follow(ctx, r.run.JobID, func(suite.Progress) bool { return true })
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		},
	}
}

// useNewKey mints a key, calls with it, and revokes it.
func useNewKey(ctx context.Context, who suite.Client, _ int) error {
	var made struct{ ID, Key string }
	err := who.Call(ctx, http.MethodPut, "/api/key/generate",
		url.Values{"name": {"upgrade"}, "scope": {string(model.ScopeUser)}}, nil, &made)
	if err != nil {
		return err
	}
	with := who
	with.Token = made.Key
	_, used := with.Whoami(ctx)
	return errors.Join(used, who.Call(ctx, http.MethodDelete, "/api/key/"+made.ID, nil, nil, nil))
}

// call has clients call until stop is called, which reports failures and the longest call.
func (u *upgrade) call() (stop func()) {
	u.t.Helper()
	ctx, cancel := context.WithCancel(u.ctx)
	var calling sync.WaitGroup
	var mu sync.Mutex
	made, longest := map[string]int{}, map[string]time.Duration{}
	repeat := func(name string, pause time.Duration, do func(ctx context.Context, n int) error) {
		calling.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				begin := time.Now()
				limited, cancel := context.WithTimeout(u.ctx, callLimit)
				err := do(limited, n)
				cancel()
				took := time.Since(begin)
				mu.Lock()
				made[name]++
				longest[name] = max(longest[name], took)
				if err != nil {
					u.t.Errorf("%s %d: %s failed after %v: %v", begin.Format(time.TimeOnly), n,
						name, took.Round(time.Millisecond), err)
				}
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	for i := range upgradeCallers {
		who := u.client("--customer", fmt.Sprint("caller", i))
		for name, do := range u.callers() {
			repeat(name, betweenCalls,
				func(ctx context.Context, n int) error { return do(ctx, who, n) })
		}
	}
	saver := u.client("--customer", "saver")
	ref, before := suite.Must(saver.Whoami(u.ctx))(u.t), suite.Must(saver.Wallet(u.ctx))(u.t)
	repeat("money", betweenCalls,
		func(ctx context.Context, _ int) error { return u.admin.Adjust(ctx, ref, 1) })
	return func() {
		u.t.Helper()
		cancel()
		calling.Wait()
		for _, name := range slices.Sorted(maps.Keys(made)) {
			u.t.Logf("%-8s %6d calls, the longest took %v", name, made[name],
				longest[name].Round(time.Millisecond))
		}
		after := suite.Must(saver.Wallet(u.ctx))(u.t)
		if moved := after.BalanceMicros - before.BalanceMicros; moved != int64(made["money"]) {
			u.t.Errorf("%d adjustments moved %d micros", made["money"], moved)
		}
	}
}
