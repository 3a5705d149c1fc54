package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

func TestFreshHoldsWhatWasAppliedBefore(t *testing.T) {
	t.Parallel()
	r := serve(t, testConfig(t, t.TempDir()))
	ctx := patient(t)
	var work sync.WaitGroup
	for c := range 8 {
		work.Go(func() {
			for n := range 50 {
				ref := fmt.Sprint(c, "-", n)
				if _, err := client.Do(ctx, r, named(ref),
					nil); err != nil {
					t.Error(err)
					return
				}
				if view, err := r.Fresh(ctx); err != nil || view.Customer(ref) == nil {
					t.Errorf("a fresh view does not hold customer %s: %v", ref, err)
					return
				}
			}
		})
	}
	work.Wait()
}

// Only a node that votes alone may confirm its leadership on its own.
func TestConfirmedAlone(t *testing.T) {
	t.Parallel()
	alone := serve(t, testConfig(t, t.TempDir()))
	if _, err := client.Do(patient(t), alone, client.TouchKeys{}, nil); err != nil {
		t.Fatal(err)
	}
	index, ok := alone.proposer.confirmedAlone()
	if applied, _ := alone.node.Store().Progress(); !ok || index < applied {
		t.Errorf("the only voter confirms %d, %v; applied is %d", index, ok, applied)
	}
	err := alone.holder.Aside(patient(t), func() error { // Raft still leads
		if _, ok := alone.proposer.confirmedAlone(); ok {
			t.Error("a leadership that has not begun is confirmed")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newNodes(t, 3, 0)
	if _, err := client.Do(patient(t), c.at(0), client.TouchKeys{}, nil); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if _, ok := c.at(n).proposer.confirmedAlone(); ok {
			t.Errorf("voter %d of 3 confirms by itself", n)
		}
	}
}

// A node that is always alone shows what it has applied without waiting for what it is applying,
// which nobody was told of.
func TestFreshOfTheOnlyNode(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	var held atomic.Bool
	applying, apply := make(chan struct{}), make(chan struct{})
	config.Point = func(name string) {
		if name == "raft.before_apply" && held.CompareAndSwap(true, false) {
			close(applying)
			<-apply
		}
	}
	r := serve(t, config)
	held.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := client.Do(patient(t), r, named("new"), nil)
		done <- err
	}()
	<-applying
	_, err := r.Fresh(patient(t))
	close(apply)
	if err != nil {
		t.Errorf("while a command is applied there is no fresh view: %v", err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if view, err := r.Fresh(patient(t)); err != nil || view.Customer("new") == nil {
		t.Errorf("a fresh view does not hold what was answered: %v", err)
	}
}

func TestConfirmationStartsAfterTheRequest(t *testing.T) {
	t.Parallel()
	var c confirmer
	started, proceed := make(chan struct{}), make(chan struct{})
	asked := 0
	ask := func() (uint64, error) {
		asked++ // one at a time
		n := asked
		started <- struct{}{}
		<-proceed
		return uint64(n), nil
	}
	answers := make(chan uint64, 3)
	request := func() {
		index, err := c.confirm(t.Context(), ask)
		if err != nil {
			t.Error(err)
		}
		answers <- index
	}
	var work sync.WaitGroup
	work.Go(request)
	<-started // later requests need the next confirmation
	work.Go(request)
	work.Go(request)
	for joined := false; !joined; { // until both wait for it
		c.mu.Lock()
		joined = c.next != nil
		c.mu.Unlock()
	}
	proceed <- struct{}{}
	if got := <-answers; got != 1 {
		t.Fatalf("the first request has confirmation %d", got)
	}
	for served := 0; served < 2; {
		select {
		case <-started:
			proceed <- struct{}{}
		case got := <-answers:
			if got < 2 {
				t.Fatalf("a later request has confirmation %d", got)
			}
			served++
		}
	}
	work.Wait()
}

func TestStoppedServerIsUnavailable(t *testing.T) {
	t.Parallel()
	r := serve(t, testConfig(t, t.TempDir()))
	r.stop()
	if _, err := client.Do(patient(t), r, client.OpenCustomer{Customer: "ann"},
		nil); fault.CodeOf(err) != fault.Unavailable {
		t.Fatalf("Do: %v", err)
	}
	if err := r.Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Fatalf("a second Run: %v", err)
	}
}

// Once a server has answered that a key is revoked, no server accepts a request with it that begins
// afterwards. Each server has accepted the key before, and remembers what it can.
func TestRevokedKeysAreAcceptedNowhere(t *testing.T) {
	t.Parallel()
	workers, each := 20, 500
	if testing.Short() {
		workers, each = 4, 10
	}
	c := newNodes(t, 3, 0)
	openCustomer(t, c.at(0), "ann")
	dir := t.TempDir()
	var servers []*apiServer
	for n := range c.configs {
		servers = append(servers, c.serveAPI(t, n, dir))
	}
	var revoked, accepted atomic.Int64
	use := func(s *apiServer, key string) error {
		return s.call("GET", "/api/key/whoami", key, nil, "", nil)
	}
	try := func(mints, revokes *apiServer) error {
		var made struct{ ID, Key string }
		if err := mints.call("PUT", "/api/key/generate?name=k&scope=USER", mints.ann, nil, "",
			&made); err != nil {
			return err
		}
		for _, s := range servers {
			if err := use(s, made.Key); err != nil {
				return err
			}
		}
		if err := revokes.call("DELETE", "/api/key/"+made.ID, revokes.ann, nil, "",
			nil); err != nil {
			return err
		}
		revoked.Add(1)
		for _, s := range servers {
			if err := use(s, made.Key); err == nil {
				accepted.Add(1)
			} else if !strings.Contains(err.Error(), ": 401 ") {
				return err
			}
		}
		return nil
	}
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for n := range each {
				if err := try(servers[n%3], servers[(n+w)%3]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	if accepted.Load() != 0 || revoked.Load() != int64(workers*each) {
		t.Errorf("%d requests with one of %d revoked keys are accepted", accepted.Load(),
			revoked.Load())
	}
}
