package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/upload"
	"shoal.dev/shoal/pkg/work"
)

const (
	scannedRows  = 1_000           // of a run read at a time
	scannedBytes = 4 << 20         // of these rows
	mergeMemory  = 16 << 20        // bytes of rows sorted in memory at a time
	mergeDisk    = int64(16) << 30 // bytes of sorted rows on the disk
	mergedBytes  = upload.MaxRow   // of a merged row
	// heldInTurns bounds the held items of a kind that is done one at a time: one and the next.
	heldInTurns = 2
)

// nothingMerged is why a merge without any result row fails.
const nothingMerged = "no row was merged: no title is in two of the runs"

// Merge joins rows of several runs into one run (decision 68). Rows with equal titles become one
// row: it has the fields of the first run, and missing ones from the others. A title in only one
// run makes no row. The rows are sorted by title on disk, which bounds memory, and are kept from
// turn to turn. The same runs make the same batches, however often a step is repeated.
func Merge(config ImportConfig) work.Kind {
	kind := config.storing(work.Merge, (*importing).merge)
	kind.AtOnce, kind.Held = 1, heldInTurns
	return kind
}

// merge reads the rows of the item's runs, and puts the merged ones.
func (i *importing) merge(ctx context.Context) error {
	return i.inTurns(ctx, func() (*remainder, error) { return i.sortRuns(ctx) },
		func(s *remainder) error {
			s.merged.put = func(row []byte) error { return i.add(ctx, row) }
			if err := s.rows.Each(s.merged.addRow); err != nil {
				return err
			}
			if err := s.merged.end(); err != nil {
				return err
			}
			if err := i.flush(ctx); err != nil {
				return err
			}
			if i.rows == 0 {
				return &upload.Refusal{Reason: nothingMerged}
			}
			return nil
		})
}

// sortRuns sorts the rows of the item's runs.
func (i *importing) sortRuns(ctx context.Context) (made *remainder, err error) {
	runs, err := client.ReadMerge(i.item.Args)
	if err != nil {
		return nil, err
	}
	rows, err := newSorter(i.Dir, i.Disk, mergeMemory, mergeDisk)
	if err != nil {
		return nil, err
	}
	defer func() {
		if made == nil {
			err = errors.Join(err, rows.Close())
		}
	}()
	s := &remainder{rows: rows, merged: &merging{}}
	for place, run := range runs {
		if err := i.sortRun(ctx, s, run, uint32(place)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sortRun adds those rows of a run that have a title to the sorter.
func (i *importing) sortRun(ctx context.Context, sorted *remainder, run ids.ID,
	place uint32) error {
	view := i.Client.View()
	job, err := i.History.Run(ctx, view, run)
	if err != nil {
		return err
	}
	if job == nil {
		return lost(run)
	}
	scope := client.Shown(view, job.Group, job.Scraper)
	scope.Jobs = []ids.ID{run}
	rows := uint64(0)
	err = i.eachStored(ctx, scope, func(doc []byte) error {
		rows++
		title, err := textOf(doc, titleField)
		if err != nil {
			return fmt.Errorf("a row of run %s: %w", run, err)
		}
		if title == "" {
			return nil
		}
		return sorted.rows.Add(title, place, doc)
	})
	if err != nil {
		return err
	}
	if rows > 0 {
		sorted.from = append(sorted.from, source{job.Group, job.Scraper, run})
	}
	return i.allRead(ctx, job, rows)
}

// open fails unless the run is still wanted. If the state has forgotten it, the run has ended or
// its customer was erased.
func (i *importing) open() error {
	if known := i.Client.View().Import(i.job.ID); known == nil || known.Ended != 0 {
		return errStopped
	}
	return nil
}

// lost is why a merge fails when its runs have lost rows.
func lost(run ids.ID) error {
	return &upload.Refusal{Reason: fmt.Sprintf("the rows of run %s were deleted or replaced "+
		"meanwhile; merge again", run)}
}

// allRead fails unless all rows of a run were read.
func (i *importing) allRead(ctx context.Context, job *client.Job, rows uint64) error {
	sum, err := i.Store.Recount(ctx, job.ID)
	if err != nil {
		return err
	}
	if sum.Items != rows {
		return lost(job.ID)
	}
	return nil
}

// titleField is the field by which rows are matched.
const titleField = "title"

// errFound ends the search for a row's field.
var errFound = errors.New("the field is found")

// textOf returns the text of a field by which rows are matched, without surrounding spaces, and ""
// if it has none. A number becomes its text.
func textOf(doc []byte, field string) (text string, err error) {
	err = eachField(doc, func(name string, value json.RawMessage) error {
		if name != field {
			return nil
		}
		switch {
		case value[0] == '"':
			if err := json.Unmarshal(value, &text); err != nil {
				return err
			}
		case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
			text = string(value)
		}
		return errFound
	})
	if err != nil && !errors.Is(err, errFound) {
		return "", err
	}
	return strings.TrimSpace(text), nil
}

// merging merges rows that come sorted by title, then by run.
type merging struct {
	put   func(row []byte) error
	title string
	last  uint32 // run of the last row
	runs  int    // number of runs with a row of the title
	names []string
	row   map[string]json.RawMessage
	size  int
}

// addRow adds a row. The first row of a title in a run counts. The row is added even if the error
// is errTurn.
func (m *merging) addRow(title string, run uint32, doc []byte) error {
	over := error(nil)
	if m.runs > 0 && title != m.title {
		if over = m.end(); over != nil && !errors.Is(over, errTurn) {
			return over
		}
	}
	if m.runs > 0 && run == m.last {
		return nil
	}
	if m.runs == 0 {
		m.title, m.names, m.row, m.size = title, m.names[:0], map[string]json.RawMessage{}, 0
	}
	m.runs, m.last = m.runs+1, run
	if err := m.fill(doc); err != nil {
		return err
	}
	return over
}

// fill adds the row's fields that are still missing.
func (m *merging) fill(doc []byte) error {
	return eachField(doc, func(name string, value json.RawMessage) error {
		if model.IsServerKey(name) {
			return nil // the server's
		}
		known, has := m.row[name]
		if has && !isEmpty(known) {
			return nil
		}
		if !has {
			m.names = append(m.names, name)
			m.size += len(name)
		}
		m.row[name] = slices.Clone(value)
		if m.size += len(value) - len(known); m.size > mergedBytes {
			return &upload.Refusal{Reason: fmt.Sprintf("the row of the title %.100q has more than "+
				"%d bytes once it is merged", m.title, mergedBytes)}
		}
		return nil
	})
}

// isEmpty says whether a value counts as missing.
func isEmpty(value json.RawMessage) bool {
	return string(value) == "null" || string(value) == `""`
}

// end makes the row of the current title.
func (m *merging) end() error {
	runs := m.runs
	if m.runs = 0; runs < 2 {
		return nil
	}
	return m.put(appendObject(nil, m.names, m.row))
}
