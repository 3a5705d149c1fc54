package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/match/matchtest"
	"shoal.dev/shoal/testkit/process"
)

// Match measures how rows find their products in a catalogue.
type Match struct {
	Products int    `help:"Products of the catalogue." default:"1000000"`
	Rows     int    `help:"Rows to match." default:"1000000"`
	Sample   int    `help:"Rows that are also compared with every product." default:"100"`
	Pairs    string `help:"Directory with public labelled pairs, SET/{train,valid,test}.txt, to test the matcher on." placeholder:"DIR" type:"existingdir"`
}

// Help returns the help text.
func (*Match) Help() string {
	return `Products and rows are synthetic: brands, words, models, colours, sizes and packs. Every four consecutive products are
variants of one model. Rows leave words out, misspell and move them, and write sizes in other units. Recall is relative to
the rows that a comparison with every product finds.

bench/match/README.md names the sources of the public pairs.

Example: shoal bench match --products 100000 --rows 100000`
}

// Promised bounds for matchSize rows and as many products on two cores.
const (
	matchSize    = 1_000_000
	matchMinutes = 15
	matchBytes   = 1 << 30
	foundMatches = 0.95 // of the matches that a full comparison finds
)

// Measure builds the index and matches the rows.
func (m *Match) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]int{"products": m.Products, "rows": m.Rows}); err != nil {
		return err
	}
	if err := notNegative(map[string]int{"sample": m.Sample}); err != nil {
		return err
	}
	if m.Pairs != "" {
		if err := judgePairs(m.Pairs, report); err != nil {
			return err
		}
	}
	debug.SetMemoryLimit(matchBytes * 3 / 4)
	of := matchtest.New(1)
	began := time.Now()
	var b match.Builder
	for n := range m.Products {
		id, p := of.Product(n)
		if err := b.Add(id, &p); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	index, err := b.Build()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	built := time.Since(began)
	on.Say("the index of %d products is built after %s", m.Products, built)
	began = time.Now()
	right, wrong := m.findAll(ctx, index, of)
	found := time.Since(began)
	if err := ctx.Err(); err != nil {
		return err
	}
	usage, err := process.UsageOf(os.Getpid())
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	on.Say("%d rows have looked for theirs after %s", m.Rows, found)
	known, same := m.sample(ctx, index, of)
	table := report.table("Rows that look for their product:", "products × rows", "index, s",
		"rows, s", "peak memory, MB", "right, %", "wrong, %", "recall of the sample, %")
	table.add(fmt.Sprintf("%d × %d", m.Products, m.Rows), built.Seconds(), found.Seconds(),
		float64(usage.PeakBytes)/(1<<20), percent(float64(right), float64(m.Rows)),
		percent(float64(wrong), float64(m.Rows)), percent(float64(same), float64(known)))
	size := scale{min(m.Products, m.Rows), matchSize, "products and rows"}
	report.atMostAt(size, "time", (built + found).Minutes(), matchMinutes, "minutes")
	report.atMostAt(size, "memory at once", float64(usage.PeakBytes)/(1<<20), matchBytes>>20, "MB")
	if known > 0 {
		report.atMost("matches that blocks miss", percent(float64(known-same), float64(known)),
			100*(1-foundMatches), "%")
	}
	return ctx.Err()
}

// findAll matches all rows on all cores. It counts those that find their product and those that
// find another.
func (m *Match) findAll(ctx context.Context, index *match.Index, of matchtest.Catalogue) (right,
	wrong int64) {
	var next, good, bad atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			finder := index.Finder()
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= m.Rows {
					return
				}
				row := of.Row(n % m.Products)
				id, _ := of.Product(n % m.Products)
				switch found, ok := finder.Find(&row); {
				case ok && found.ID == id:
					good.Add(1)
				case ok:
					bad.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return good.Load(), bad.Load()
}

// sample counts the rows that a comparison with all products matches, and how many of them the
// index matches as well.
func (m *Match) sample(ctx context.Context, index *match.Index, of matchtest.Catalogue) (known,
	same int) {
	finder := index.Finder()
	for n := 0; n < m.Sample && ctx.Err() == nil; n++ {
		row := of.Row(n * m.Products / m.Sample)
		all, ok := finder.FindSlowly(&row)
		if !ok {
			continue
		}
		known++
		if found, _ := finder.Find(&row); found == all {
			same++
		}
	}
	return known, same
}

var errPairs = errors.New("no public pairs are there")
