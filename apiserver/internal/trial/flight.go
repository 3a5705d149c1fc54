package trial

import (
	"context"
	"sync"

	"shoal.dev/shoal/pkg/fault"
)

// flights are the looks at pages that are under way, by the keys of their pages. Each is of a call,
// so that there are no more of them than calls.
type flights struct {
	mu    sync.Mutex
	under map[string]*flight
}

// flight is one look. Its page and its error are there once it has landed.
type flight struct {
	landed chan struct{}
	page   *Page
	err    error
}

// board is the look under a key, and whether the caller has begun it and has to land it.
func (f *flights) board(key string) (look *flight, begun bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if look = f.under[key]; look != nil {
		return look, false
	}
	if f.under == nil {
		f.under = map[string]*flight{}
	}
	look = &flight{landed: make(chan struct{})}
	f.under[key] = look
	return look, true
}

// land ends a look, for all who wait for it.
func (f *flights) land(key string, look *flight, page *Page, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, key)
	look.page, look.err = page, err
	close(look.landed)
}

// shared says whether what came of a look is that of others, too. A caller that hung up, a cap and
// an empty wallet are one caller's own. Whoever waits then looks for itself.
func (l *flight) shared() bool {
	return l.err == nil || fault.CodeOf(l.err) == fault.SourceUnreachable
}

// lookOnce looks at a page. Calls that want the same page meanwhile get what comes of that look,
// and pay nothing.
func (t *Trials) lookOnce(ctx context.Context, from *Caller, key string,
	look func() (*Page, error)) (*Page, error) {
	for {
		under, begun := t.looks.board(key)
		if begun {
			return t.fly(key, under, look)
		}
		if err := t.awaitLook(ctx, from, under); err != nil {
			return nil, err
		}
		if under.shared() {
			return under.page, under.err
		}
	}
}

// fly is the look of who has begun it. It lands however it ends, or all who wait would go on.
func (t *Trials) fly(key string, under *flight, look func() (*Page, error)) (page *Page,
	err error) {
	err = fault.New(fault.Unavailable, "the page was not looked at")
	defer func() { t.looks.land(key, under, page, err) }()
	return look()
}

// awaitLook waits for the look of another call, for as long as the caller does.
func (t *Trials) awaitLook(ctx context.Context, from *Caller, under *flight) error {
	for {
		select {
		case <-under.landed:
			return nil
		case <-t.Clock.After(goneEvery):
			if err := from.Waits(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
