// Package archive owns how closed runs and sealed ledger entries are written for the row store's
// archive and read back, and which are next. When they are written, and when they leave the state,
// is the leader's; who reads them is the client's.
package archive

import (
	"fmt"
	"slices"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// Path is what a view sees of the archive.
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

// Batch is what leaves the state together: everything sealed behind From and up to Upto.
type Batch struct {
	Generation ids.ID // of the state
	From, Upto uint64
	Runs       []rowstore.PastRun
	Entries    []rowstore.PastEntry
	// Cuts are where the batch may be parted, ascending: each is the index of a command that sealed
	// something, the last is Upto.
	Cuts []uint64
	More bool // something sealed follows
}

// Next is the next batch of a view, of about so many runs and entries, 2 or more; without any, Upto
// is From. What one command has sealed is not parted.
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
	// Of a row that is not whole the last index may have more.
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

// addRun adds a run with its ledger entry. A trial that delivered nothing has none.
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

// EncodeRun is a closed run as the archive keeps it.
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

// DecodeRun is the run that a record keeps.
func DecodeRun(record rowstore.PastRecord) (*state.Job, error) {
	job := &state.Job{}
	if err := codec.New().Unmarshal(record.Body, job); err != nil {
		return nil, fmt.Errorf("archive: run %s: %w", record.ID, err)
	}
	return job, nil
}

// EncodeEntry is a sealed entry as the archive keeps it.
func EncodeEntry(generation ids.ID, sealed uint64, entry *state.Entry) (rowstore.PastEntry, error) {
	body, err := codec.New().Marshal(entry)
	if err != nil {
		return rowstore.PastEntry{}, fmt.Errorf("archive: entry %s: %w", entry.ID, err)
	}
	return rowstore.PastEntry{ID: entry.ID, Generation: generation, Sealed: sealed,
		Customer: entry.Customer, Created: entry.Created, Body: body}, nil
}

// DecodeEntry is the entry that a record keeps.
func DecodeEntry(record rowstore.PastEntry) (*state.Entry, error) {
	entry := &state.Entry{}
	if err := codec.New().Unmarshal(record.Body, entry); err != nil {
		return nil, fmt.Errorf("archive: entry %s: %w", record.ID, err)
	}
	return entry, nil
}
