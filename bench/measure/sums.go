package measure

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"time"

	"shoal.dev/shoal/pkg/profile"
)

const (
	loopSummed  = 1_000  // pages whose rows are summed up
	summedPages = 20_000 // as often as that in all, in turn
)

// errNoRows is the error for pages that have nothing to sum up.
var errNoRows = errors.New("bench: the pages have no rows")

// sumUp reads pages, takes the field sums of summedPages as ingest does, and returns the processor
// time of the sums. What they cost as a part of a page's record is not in it.
func (r *reader) sumUp(ctx context.Context, addresses []string) (time.Duration, error) {
	var pages [][][]byte
	for _, address := range addresses {
		if _, err := r.use(ctx, address, func(rows [][]byte) error {
			var page [][]byte
			for _, row := range rows {
				page = append(page, bytes.Clone(row))
			}
			pages = append(pages, page)
			return nil
		}); err != nil {
			return 0, err
		}
	}
	if len(pages) == 0 || len(pages[0]) == 0 {
		return 0, errNoRows
	}
	runtime.GC()
	before, err := ownCPU()
	if err != nil {
		return 0, err
	}
	var sums profile.Sums
	for n := range summedPages {
		sums.Reset()
		for _, row := range pages[n%len(pages)] {
			sums.Add(row)
		}
		sums.EncodePage()
	}
	after, err := ownCPU()
	return after - before, err
}
