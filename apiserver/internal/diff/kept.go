package diff

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

const (
	// keptReaders of one process may wait for their next page, 21 MB each at most.
	keptReaders = 4
	// keptFor is how long a reader waits.
	keptFor = 2 * time.Minute
)

// Kept holds readers until someone asks for their next page. So a page need not compare all rows
// again. It only saves time: without a kept reader, a new comparison gives the same result. Beyond
// keptReaders, the one that waited longest is dropped.
type Kept struct {
	clock clock.Clock
	mu    sync.Mutex
	all   []kept // longest waiting first
}

type kept struct {
	of     string
	at     Place
	since  time.Time
	reader *Reader
}

// NewKept makes an empty Kept.
func NewKept(c clock.Clock) *Kept { return &Kept{clock: c} }

// Keep keeps a reader that stands at a place. of identifies its comparison.
func (k *Kept) Keep(of []string, at Place, reader *Reader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop()
	if len(k.all) == keptReaders {
		k.all = slices.Delete(k.all, 0, 1)
	}
	k.all = append(k.all, kept{name(of, reader.runs), at, k.clock.Now(), reader})
}

// Read returns a reader before the first change after a place. A kept reader then belongs to the
// caller alone.
func (k *Kept) Read(of []string, runs Runs, at Place) *Reader {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop()
	wanted := name(of, runs)
	i := slices.IndexFunc(k.all, func(one kept) bool { return one.of == wanted && one.at == at })
	if i < 0 {
		return runs.Read(at)
	}
	reader := k.all[i].reader
	k.all = slices.Delete(k.all, i, i+1)
	return reader
}

// drop drops the readers that have waited too long.
func (k *Kept) drop() {
	now := k.clock.Now()
	k.all = slices.DeleteFunc(k.all, func(one kept) bool { return now.Sub(one.since) > keptFor })
}

// name identifies a comparison. Rows removed meanwhile make it a different one.
func name(of []string, r Runs) string {
	return fmt.Sprintf("%d %d %q %q", r.Rows, r.NewerRows, r.Key, of)
}
