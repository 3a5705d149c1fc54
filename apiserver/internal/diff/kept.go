package diff

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

const (
	// keptReaders of one process wait for their next page, 21 MB each at most.
	keptReaders = 4
	// keptFor is how long one waits.
	keptFor = 2 * time.Minute
)

// Kept are readers that wait for whoever asks for their next page. So a page costs its own share,
// and not a comparison of all rows. It is only faster by that: who finds none compares anew, and
// comes to the same. Beyond keptReaders the one goes that waited longest.
type Kept struct {
	clock clock.Clock
	mu    sync.Mutex
	all   []kept // the one that waited longest first
}

type kept struct {
	of     string
	at     Place
	since  time.Time
	reader *Reader
}

// NewKept makes room for readers.
func NewKept(c clock.Clock) *Kept { return &Kept{clock: c} }

// Keep keeps a reader that is before the changes behind a place. of says of what comparison it is.
func (k *Kept) Keep(of []string, at Place, reader *Reader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop()
	if len(k.all) == keptReaders {
		k.all = slices.Delete(k.all, 0, 1)
	}
	k.all = append(k.all, kept{name(of, reader.runs), at, k.clock.Now(), reader})
}

// Read is before the first change behind a place. A reader that waits there is the caller's alone
// from then on.
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

// drop drops those that have waited too long.
func (k *Kept) drop() {
	now := k.clock.Now()
	k.all = slices.DeleteFunc(k.all, func(one kept) bool { return now.Sub(one.since) > keptFor })
}

// name is what a comparison is called. Rows that went meanwhile make another one of it.
func name(of []string, r Runs) string {
	return fmt.Sprintf("%d %d %q %s", r.Rows, r.NewerRows, r.Key, strings.Join(of, "\x00"))
}
