package ingest

import (
	"maps"
	"slices"
	"sync"
)

// maxPassed bounds what is noted as passed over.
const maxPassed = 1_000

// passed are the things that a kind of work has failed on. They are left out until it is through
// with the others, so that one that cannot be done costs no other its turn. Its methods are safe
// for concurrent use: an owner that lost its claim may still be at work beside the next one.
type passed[K comparable] struct {
	mu     sync.Mutex
	things map[K]bool
}

func newPassed[K comparable]() *passed[K] { return &passed[K]{things: map[K]bool{}} }

// note notes what came of the work on a thing, and returns it.
func (p *passed[K]) note(thing K, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		delete(p.things, thing)
	case len(p.things) == maxPassed:
		clear(p.things)
	}
	if err != nil {
		p.things[thing] = true
	}
	return err
}

func (p *passed[K]) has(thing K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.things[thing]
}

func (p *passed[K]) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.things)
}

// all are those that are passed over.
func (p *passed[K]) all() []K {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.things))
}

// forget lets all be tried again.
func (p *passed[K]) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.things)
}
