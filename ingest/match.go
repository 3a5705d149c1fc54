package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/jsontext"
	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/upload"
	"shoal.dev/shoal/pkg/work"
)

// Why a match fails.
const (
	noCatalogue = "the catalogue was replaced meanwhile; match again"
	notSame     = "rows of the group were changed meanwhile; match again"
)

// Match finds the products of a group's rows in the catalogue (decision 68). A row of the result
// names the row, the product, the certainty and the method. It reads the latest COMPLETED runs of
// the group's scrapers that ended before the match began. So a repeated step reads the same rows
// and makes the same batches. The catalogue is the one with which the match began. Its index and
// the place in the rows are kept from turn to turn.
func Match(config ImportConfig) work.Kind {
	kind := config.storing(work.Match, (*importing).match)
	sweep := kind.Ready
	kind.AtOnce, kind.Held = 1, heldInTurns
	kind.Ready = func() bool { return sweep() && config.Files != nil }
	return kind
}

// match reads the rows of the group, and puts the matches.
func (i *importing) match(ctx context.Context) error {
	return i.inTurns(ctx,
		func() (*remainder, error) { return &remainder{matched: &matching{}}, nil },
		func(r *remainder) error {
			r.matched.importing = i
			return r.matched.goOn(ctx)
		})
}

// goOn continues a match from its place, if the catalogue and the runs are still the same.
func (m *matching) goOn(ctx context.Context) error {
	i, view := m.importing, m.Client.View()
	if len(i.item.Args) != len(ids.ID{}) {
		return fmt.Errorf("the arguments have %d bytes", len(i.item.Args))
	}
	known := view.Catalogue(ids.ID(i.item.Args))
	sibling := view.Group(i.job.Group)
	switch {
	case known == nil || known.State != client.CatalogueReady:
		return &upload.Refusal{Reason: noCatalogue}
	case sibling == nil:
		return errStopped
	}
	runs, err := i.notedRuns(ctx, view, sibling.Of)
	if err != nil {
		return err
	}
	if m.index == nil {
		if err := m.findIndex(ctx, known); err != nil {
			return err
		}
	}
	for m.run < len(runs) {
		if err := m.matchRun(ctx, view, runs[m.run]); err != nil {
			return err
		}
		m.run, m.read = m.run+1, scanned{}
	}
	if err := m.tellKeys(ctx, sibling.Of); err != nil {
		return err
	}
	return m.flush(ctx)
}

// findIndex takes the index of the catalogue that another match keeps, or builds it.
func (m *matching) findIndex(ctx context.Context, known *client.Catalogue) (err error) {
	index := m.remainders.shareIndex(known.ID)
	if index == nil {
		if index, err = m.indexOf(ctx, known); err != nil {
			return err
		}
	}
	m.catalogue, m.index = known.ID, index
	m.finders = make([]*match.Finder, runtime.GOMAXPROCS(0))
	for n := range m.finders {
		m.finders[n] = index.Finder()
	}
	return nil
}

// indexOf builds the index of a catalogue.
func (i *importing) indexOf(ctx context.Context, known *client.Catalogue) (*match.Index, error) {
	var b match.Builder
	if err := readCatalogue(ctx, i.Files, known, b.Add); err != nil {
		return nil, err
	}
	index, err := b.Build()
	if err != nil {
		return nil, &upload.Refusal{Reason: err.Error()}
	}
	return index, nil
}

// notedRuns returns the runs that a match reads, which must be those it noted before its first
// batch. If one was replaced or deleted since, the match fails.
func (i *importing) notedRuns(ctx context.Context, view *client.View, group ids.ID) ([]*client.Job,
	error) {
	runs, err := i.runsOf(ctx, view, group)
	if err != nil {
		return nil, err
	}
	var there []*client.Job
	sum := xxh3.New()
	for _, run := range runs {
		held, err := i.Store.Holding(ctx, client.ShownOf(view, run), 1)
		if err != nil {
			return nil, err
		}
		if len(held) > 0 {
			there = append(there, run)
			_, _ = sum.Write(run.ID[:]) // a hash accepts everything
		}
	}
	noted := sum.Sum(nil)
	switch {
	case len(i.item.Progress) == 0:
		i.progress = noted
		return nil, errNoted
	case !bytes.Equal(i.item.Progress, noted):
		return nil, &upload.Refusal{Reason: notSame}
	}
	return there, nil
}

// runsOf returns a group's latest runs before the match, in the order of scraper ids.
func (i *importing) runsOf(ctx context.Context, view *client.View, group ids.ID) ([]*client.Job,
	error) {
	var scrapers []ids.ID
	view.GroupScrapers(group, func(s *client.Scraper) bool {
		scrapers = append(scrapers, s.ID)
		return true
	})
	slices.SortFunc(scrapers, func(a, b ids.ID) int { return cmp.Compare(a.String(), b.String()) })
	var runs []*client.Job
	since := client.RowsSince(view)
	for _, scraper := range scrapers {
		err := i.History.ScraperRuns(ctx, view, scraper, func(job *client.Job) bool {
			if job.Started*1000 < since {
				return false // it has expired, and so have older ones
			}
			if job.State != model.Completed || job.Trial() || job.Finished >= i.job.Started ||
				view.DeletedRun(job.ID) != nil || view.HeldRun(job.ID) != nil {
				return true
			}
			runs = append(runs, job)
			return false
		})
		if err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// matching is a match in progress, and its place when a turn ends.
type matching struct {
	*importing // the current turn
	catalogue  ids.ID
	index      *match.Index // of the catalogue
	finders    []*match.Finder
	keys       []client.KeyColumn // columns of uploads with trade numbers
	run        int                // being read, of the noted ones
	read       scanned            // of that run
}

// scanned is how far a run was read.
type scanned struct {
	upto, last int64 // where its rows end, and where those read end
	rows       uint64
	columns    match.Columns
	found      [][]byte // for the rows of the last scan not added yet; nil: no match
}

// matchRun reads the rows of a run from its place on.
func (m *matching) matchRun(ctx context.Context, view *client.View, job *client.Job) (err error) {
	r := &m.read
	if r.upto == 0 {
		if r.upto, err = m.Store.Horizon(ctx); err != nil {
			return err
		}
	}
	scope := client.Shown(view, job.Group, job.Scraper)
	scope.Jobs = []ids.ID{job.ID}
	q := rowstore.ScanQuery{Scope: scope, Upto: r.upto, Limit: scannedRows, Bytes: scannedBytes}
	for {
		if err := m.addFound(ctx); err != nil {
			return err
		}
		if r.last >= r.upto {
			return m.allThere(ctx, job, r.rows)
		}
		if err := m.open(); err != nil {
			return err
		}
		q.After = r.last
		docs, last, err := m.Store.Scan(ctx, q)
		if err != nil {
			return err
		}
		if r.rows == 0 {
			if len(docs) == 0 {
				return &upload.Refusal{Reason: notSame} // the run had rows a moment ago
			}
			if r.columns, err = client.MatchedColumns(docs); err != nil {
				return err
			}
			if !r.columns.Comparable() {
				return nil
			}
			m.noteKey(view, job.Scraper, r.columns.Number)
		}
		if r.found, err = m.findAll(docs, r.columns); err != nil {
			return err
		}
		r.rows, r.last = r.rows+uint64(len(docs)), last
	}
}

// allThere fails unless all rows of a run were read: otherwise the batches would differ.
func (m *matching) allThere(ctx context.Context, job *client.Job, rows uint64) error {
	if rows == job.Items {
		return nil
	}
	sum, err := m.Store.Recount(ctx, job.ID)
	if err == nil && sum.Items != rows {
		err = &upload.Refusal{Reason: notSame}
	}
	return err
}

// findAll looks for the products of rows on all cores. It returns the matches in the order of the
// rows.
func (m *matching) findAll(docs []json.RawMessage, columns match.Columns) ([][]byte, error) {
	found := make([][]byte, len(docs))
	failed := make([]error, len(m.finders))
	var workers sync.WaitGroup
	for n, finder := range m.finders {
		workers.Go(func() {
			for at := n; at < len(docs) && failed[n] == nil; at += len(m.finders) {
				found[at], failed[n] = matchRow(finder, docs[at], columns)
			}
		})
	}
	workers.Wait()
	return found, errors.Join(failed...)
}

// addFound adds the matches of the last scan. What it adds is no longer in the remainder, even if
// the error is errTurn.
func (m *matching) addFound(ctx context.Context) error {
	for r := &m.read; len(r.found) > 0; {
		row := r.found[0]
		r.found = r.found[1:]
		if row == nil {
			continue
		}
		if err := m.add(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// rowField is the field with a row's id.
const rowField = "_rowId"

// matchRow returns the row to store for a match, nil without one.
func matchRow(finder *match.Finder, doc []byte, columns match.Columns) ([]byte, error) {
	values := make(map[string]string, 5)
	err := eachField(doc, func(name string, value json.RawMessage) error {
		switch name {
		case rowField, columns.Number, columns.Brand, columns.Model, columns.Title:
			values[name] = valueText(value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	product := columns.Product(func(column string) string { return values[column] })
	found, ok := finder.Find(&product)
	if !ok {
		return nil, nil
	}
	row := append([]byte(nil), `{"rowId":`...)
	row = jsontext.AppendString(row, values[rowField])
	row = jsontext.AppendString(append(row, `,"catalogueId":`...), found.ID)
	row = strconv.AppendFloat(append(row, `,"score":`...), found.Score, 'f', -1, 64)
	row = jsontext.AppendString(append(row, `,"method":`...), string(found.Method))
	return append(row, '}'), nil
}

// valueText returns a text, or a number as text; "" for anything else.
func valueText(value json.RawMessage) (text string) {
	switch c := value[0]; {
	case c == '"':
		if json.Unmarshal(value, &text) != nil {
			return ""
		}
	case c == '-' || c >= '0' && c <= '9':
		return string(value)
	}
	return text
}

// noteKey notes which column of an upload's rows has trade numbers (decision 67).
func (m *matching) noteKey(view *client.View, id ids.ID, column string) {
	scraper := view.Scraper(id)
	if column == "" || len(column) > client.MaxKeyColumn || scraper == nil ||
		scraper.Spec.Type != model.File {
		return
	}
	m.keys = append(m.keys, client.KeyColumn{Scraper: id, Column: column})
}

// tellKeys reports the key columns of the group's uploads to the state.
func (m *matching) tellKeys(ctx context.Context, group ids.ID) error {
	for keys := range slices.Chunk(m.keys, client.MaxKeyColumns) {
		_, err := client.Do(ctx, m.Client, client.ProtectGroup{Group: group, Columns: keys}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}
