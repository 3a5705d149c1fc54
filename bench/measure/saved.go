package measure

import (
	"context"
	"fmt"

	"shoal.dev/shoal/bench/saved"
)

// minFound is the share of a half's pages required for a judgement.
const minFound = 0.9

// readHalf passes on the pages of a half of a corpus, each with its entry, in the corpus's order.
// what names the corpus.
func readHalf[E any](ctx context.Context, on *Bench, what, dir string, half saved.Half,
	entries []E, source func(*E) *saved.Source, read func(entry *E, body []byte)) error {
	bodies, err := loadHalf(on, what, dir, half, entries, source)
	if err != nil {
		return err
	}
	for i := range entries {
		body, found := bodies[source(&entries[i]).SHA256]
		if !found {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		read(&entries[i], body)
	}
	return nil
}

// loadHalf reads the pages of a half of a corpus, by hash. what names the corpus.
func loadHalf[E any](on *Bench, what, dir string, half saved.Half, entries []E,
	source func(*E) *saved.Source) (map[string][]byte, error) {
	pages, wanted := map[string][]byte{}, 0
	for i := range entries {
		at := source(&entries[i])
		if saved.HalfOf(at.Site) != half {
			continue
		}
		wanted++
		body, found, err := at.Load(dir)
		if err != nil {
			return nil, err
		}
		if found {
			pages[at.SHA256] = body
		}
	}
	on.Say("%s: %d of %d pages of the half %s found", what, len(pages), wanted, half)
	if float64(len(pages)) < minFound*float64(wanted) || wanted == 0 {
		return nil, fmt.Errorf("bench: %d of %d pages found in %s, want at least 90%%; "+
			"bench/%s/README.md says how they are gathered", len(pages), wanted, dir, what)
	}
	return pages, nil
}
