package ingest

import (
	"maps"
	"slices"
	"sync"
)

// maxPassed bounds how many things are recorded as passed over.
const maxPassed = 1_000

// passed is the set of things on which a kind of work has failed. They are skipped until the others
// are done, so that a failing one does not hold up the rest. Its methods are safe for concurrent
// use: an owner that lost its claim may still work beside the next one.
type passed[K comparable] struct {
	mu     sync.Mutex
	things map[K]bool
}

func newPassed[K comparable]() *passed[K] { return &passed[K]{things: map[K]bool{}} }

// note records the result of the work on a thing, and returns its error.
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

// add records things on which another process has failed, up to the bound.
func (p *passed[K]) add(things []K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, thing := range things[:min(len(things), maxPassed-len(p.things))] {
		p.things[thing] = true
	}
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

// all returns the things that are passed over.
func (p *passed[K]) all() []K {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.things))
}

// forget makes all of them eligible again.
func (p *passed[K]) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.things)
}
