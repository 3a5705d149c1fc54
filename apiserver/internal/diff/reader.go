package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/rowstore"
)

// Reader reads changes one by one. Each part begins with the added and changed rows in the newer
// run's storage order, then come the removed ones. Only one goroutine may use it.
type Reader struct {
	runs  Runs
	at    Place // of the next change
	skip  int   // changes of the part to skip, read earlier
	table *table
	sums  Sums // of the current part

	newer  batch // rows of the newer run; the first looked ones are done
	looked int
	after  int64 // the place after them
	hasher *hasher

	left []entry // removed rows, once the newer run is read
	held []batch // of the older run, newest last

	ahead *Change // found after a page was full
}

// Read returns a reader before the first change after a place.
func (r Runs) Read(at Place) *Reader {
	return &Reader{runs: r, at: Place{Part: at.Part}, skip: at.Done}
}

// Next returns the next changes, at most most of them, until their rows reach a size in bytes. at
// is where the following ones begin; more says whether there are any.
func (r *Reader) Next(ctx context.Context, most, bytes int) (found []Change, at Place, more bool,
	err error) {
	at = r.at
	if r.ahead != nil {
		at.Done--
	}
	for size := 0; ; {
		c := r.ahead
		if r.ahead = nil; c == nil {
			if c, err = r.step(ctx); err != nil {
				return nil, at, false, err
			}
		}
		if c == nil {
			return found, r.at, false, nil
		}
		if len(found) >= most || size >= bytes {
			r.ahead = c
			return found, at, true, nil
		}
		found, at = append(found, *c), r.at
		size += len(c.Before) + len(c.After)
	}
}

// step finds the next change, nil if there is none.
func (r *Reader) step(ctx context.Context) (*Change, error) {
	for ; r.at.Part < r.runs.parts(); r.at, r.skip = (Place{Part: r.at.Part + 1}), 0 {
		if err := r.openPart(ctx); err != nil {
			return nil, err
		}
		for {
			change, before, err := r.look(ctx)
			if err != nil {
				return nil, err
			}
			if change.Kind == "" {
				break
			}
			if r.at.Done++; r.at.Done <= r.skip {
				continue
			}
			return r.whole(ctx, change, before)
		}
		r.table, r.left = nil, nil
	}
	return nil, nil
}

// openPart makes the table of the part, unless it exists.
func (r *Reader) openPart(ctx context.Context) (err error) {
	if r.table != nil {
		return nil
	}
	r.newer, r.looked, r.after, r.hasher = batch{}, 0, 0, r.runs.hasher(r.at.Part)
	r.table, r.sums, err = r.runs.fill(ctx, r.at.Part)
	return err
}

// look finds the part's next change without its older row. Without a kind there is none.
func (r *Reader) look(ctx context.Context) (change Change, before *entry, err error) {
	for r.left == nil {
		for ; r.looked < len(r.newer.docs); r.looked++ {
			row, of := r.hasher.row(r.newer.docs[r.looked])
			if !of {
				continue
			}
			if before, change.Kind = r.table.matchRow(row); change.Kind == "" {
				continue
			}
			change.After = r.newer.docs[r.looked]
			r.looked++
			return change, before, nil
		}
		if r.after >= r.runs.Upto {
			r.left = r.table.left()
			break
		}
		if r.newer, r.after, err = r.runs.read(ctx, r.runs.To, r.after); err != nil {
			return change, nil, err
		}
		r.looked = 0
	}
	if len(r.left) == 0 {
		return change, nil, nil
	}
	before, r.left = &r.left[0], r.left[1:]
	return Change{Kind: Removed}, before, nil
}

// whole completes a change with its older row.
func (r *Reader) whole(ctx context.Context, change Change, before *entry) (*Change, error) {
	if before == nil {
		return &change, nil
	}
	var err error
	if change.Before, err = r.before(ctx, before); err != nil {
		return nil, err
	}
	if change.Kind == Changed {
		change.Fields = r.runs.differing(change.Before, change.After)
	}
	return &change, nil
}

// before reads a row of the older run.
func (r *Reader) before(ctx context.Context, e *entry) (json.RawMessage, error) {
	i := slices.IndexFunc(r.held, func(b batch) bool { return b.after == e.after })
	if i < 0 {
		b, _, err := r.runs.read(ctx, r.runs.From, e.after)
		if err != nil {
			return nil, err
		}
		if len(r.held) == heldBatches {
			r.held = slices.Delete(r.held, 0, 1)
		}
		i, r.held = len(r.held), append(r.held, b)
	}
	if docs := r.held[i].docs; int(e.n) < len(docs) {
		return docs[e.n], nil
	}
	return nil, fmt.Errorf("rows of the older run went while they were compared")
}

// differing are the members that differ between two rows, in the newer row's order.
func (r Runs) differing(before, after json.RawMessage) []string {
	old := map[string]string{}
	for m := rowstore.MembersOf(before); m.Next(); {
		if r.compares(m.Key) && m.Value != "null" {
			old[m.Key] = m.Value
		}
	}
	names := []string{}
	for m := rowstore.MembersOf(after); m.Next(); {
		if !r.compares(m.Key) || m.Value == "null" {
			continue
		}
		if old[m.Key] != m.Value {
			names = append(names, m.Key)
		}
		delete(old, m.Key)
	}
	for m := rowstore.MembersOf(before); m.Next(); { // removed members, in their order
		if _, gone := old[m.Key]; gone {
			names = append(names, m.Key)
		}
	}
	return names
}
