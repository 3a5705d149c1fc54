// Package archive owns the encoding of closed runs, sealed ledger entries and audit entries for the
// row store's archive. It also chooses the next ones to archive. The leader decides when they are
// written and leave the state; the client reads them.
package archive

import (
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// Path returns the part of the archive that a view sees.
func Path(view *state.View) rowstore.Path {
	upto := view.ArchivedTo()
	if upto == 0 {
		return nil
	}
	var path rowstore.Path
	for _, step := range view.Ancestry(upto) {
		path = append(path, rowstore.PathStep{Generation: step.Generation,
			Upto: min(step.Upto, upto)})
	}
	return path
}

// Batch is what leaves the state together: everything sealed after From and up to Upto.
type Batch struct {
	Generation ids.ID // of the state
	From, Upto uint64
	Runs       []rowstore.PastRun
	Entries    []rowstore.PastEntry
	// Cuts are the indexes at which the batch may be split, ascending: those of commands that
	// sealed something. The last one is Upto.
	Cuts []uint64
	More bool // more is sealed after Upto
}

// Next returns the next batch of a view, of about most runs and most entries; most is 2 or more. It
// never splits what one command sealed. If nothing is sealed, Upto is From.
func Next(view *state.View, most int) (Batch, error) {
	b := Batch{From: view.ArchivedTo()}
	b.Upto = b.From
	b.Generation = view.Ancestry(b.From)[0].Generation
	var runs []*state.Job
	view.ClosedAfter(b.From, func(job *state.Job) bool {
		runs = append(runs, job)
		return len(runs) < most
	})
	var entries []*state.Entry
	view.MadeSealedAfter(b.From, func(entry *state.Entry) bool {
		entries = append(entries, entry)
		return len(entries) < most
	})
	if len(runs) > 0 {
		b.Upto = runs[len(runs)-1].Index
	}
	if len(entries) > 0 {
		b.Upto = max(b.Upto, entries[len(entries)-1].Created)
	}
	// A list of length most may lack some of its last index.
	if len(runs) == most {
		b.Upto, b.More = min(b.Upto, runs[most-1].Index-1), true
	}
	if len(entries) == most {
		b.Upto, b.More = min(b.Upto, entries[most-1].Created-1), true
	}
	for _, job := range runs {
		if job.Index <= b.Upto {
			if err := b.addRun(view, job); err != nil {
				return b, err
			}
			b.Cuts = append(b.Cuts, job.Index)
		}
	}
	for _, entry := range entries {
		if entry.Created <= b.Upto {
			if err := b.addEntry(view, entry, entry.Created); err != nil {
				return b, err
			}
			b.Cuts = append(b.Cuts, entry.Created)
		}
	}
	slices.Sort(b.Cuts)
	b.Cuts = slices.Compact(b.Cuts)
	return b, nil
}

// Expired lists the runs of a view that finished before a time and are in the archive, too, in the
// order of closing.
func Expired(view *state.View, before time.Time) (old []ids.ID) {
	view.ClosedAfter(0, func(job *state.Job) bool {
		archived := view.Archived(job)
		if archived && job.Finished < before.UnixMilli() {
			old = append(old, job.ID)
		}
		return archived
	})
	return old
}

// addRun adds a run with its ledger entry. A trial that delivered nothing has no entry.
func (b *Batch) addRun(view *state.View, job *state.Job) error {
	run, err := EncodeRun(view.GenerationAt(job.Index), job)
	if err != nil {
		return err
	}
	b.Runs = append(b.Runs, run)
	if entry := view.Entry(job.Entry); entry != nil {
		return b.addEntry(view, entry, job.Index)
	}
	return nil
}

func (b *Batch) addEntry(view *state.View, entry *state.Entry, sealed uint64) error {
	record, err := EncodeEntry(view.GenerationAt(sealed), sealed, entry)
	b.Entries = append(b.Entries, record)
	return err
}

// EncodeRun encodes a closed run for the archive.
func EncodeRun(generation ids.ID, job *state.Job) (rowstore.PastRun, error) {
	body, err := codec.New().Marshal(job)
	if err != nil {
		return rowstore.PastRun{}, fmt.Errorf("archive: run %s: %w", job.ID, err)
	}
	return rowstore.PastRun{ID: job.ID, Generation: generation, Sealed: job.Index,
		Customer: job.Customer, Trial: job.Unlisted(), PastKind: rowstore.PastKind{Group: job.Group,
			Scraper: job.Scraper, State: string(job.State)}, List: job.List, Queued: job.Queued,
		Started: job.Started, Finished: job.Finished, Links: job.Links, Success: job.Success,
		Errors: job.Errors, Items: job.Items, Pages: job.Pages, Delivered: job.Delivered,
		Charged: job.Charged, Body: body}, nil
}

// DecodeRun decodes a run of the archive.
func DecodeRun(record rowstore.PastRecord) (*state.Job, error) {
	job := &state.Job{}
	if err := codec.New().Unmarshal(record.Body, job); err != nil {
		return nil, fmt.Errorf("archive: run %s: %w", record.ID, err)
	}
	return job, nil
}

// EncodeEntry encodes a sealed entry for the archive.
func EncodeEntry(generation ids.ID, sealed uint64, entry *state.Entry) (rowstore.PastEntry, error) {
	body, err := codec.New().Marshal(entry)
	if err != nil {
		return rowstore.PastEntry{}, fmt.Errorf("archive: entry %s: %w", entry.ID, err)
	}
	return rowstore.PastEntry{ID: entry.ID, Generation: generation, Sealed: sealed,
		Customer: entry.Customer, Created: entry.Created, Body: body}, nil
}

// DecodeEntry decodes an entry of the archive.
func DecodeEntry(record rowstore.PastEntry) (*state.Entry, error) {
	entry := &state.Entry{}
	if err := codec.New().Unmarshal(record.Body, entry); err != nil {
		return nil, fmt.Errorf("archive: entry %s: %w", record.ID, err)
	}
	return entry, nil
}
