package ingest

// maxPassed bounds what is noted as passed over.
const maxPassed = 1_000

// passed are the things that a kind of work has failed on. They are left out until it is through
// with the others, so that one that cannot be done costs no other its turn. It is for one
// goroutine.
type passed[K comparable] map[K]bool

// note notes what came of the work on a thing, and returns it.
func (p passed[K]) note(thing K, err error) error {
	switch {
	case err == nil:
		delete(p, thing)
	case len(p) == maxPassed:
		clear(p)
	}
	if err != nil {
		p[thing] = true
	}
	return err
}
