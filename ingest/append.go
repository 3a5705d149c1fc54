package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/upload"
)

// addedSeq is the first seq of rows that are added. An upload that began to replace rows before its
// scraper was protected has stored units below it. They go when the run is sealed.
const addedSeq = 1 << 30

// changedMeanwhile is why an upload fails when its base has changed.
const changedMeanwhile = "rows of the scraper were deleted meanwhile; send the file again"

// errNoted ends a step that has noted the runs to which a file's rows are added.
var errNoted = errors.New("the runs are noted")

// keyed says whether the file's rows are added to the existing rows. If the scraper was protected
// after the upload began, keyed fixes its key column.
func (i *importing) keyed(ctx context.Context) (bool, error) {
	view := i.Client.View()
	scraper := view.Scraper(i.job.Scraper)
	if i.known.Key != "" || scraper == nil || !view.Protects(scraper) {
		return i.known.Key != "", nil
	}
	if sealed, err := i.Store.Sealed(ctx, i.job.ID); err != nil || sealed {
		return false, err // all is stored; the state reports the protection as too late
	}
	column, err := client.KeyColumnOf(ctx, i.Store, view, scraper, i.known.Asked)
	switch fault.CodeOf(err) {
	case "":
	case fault.KeyColumnRequired, fault.KeyColumnInvalid:
		return false, &upload.Refusal{Reason: "the scraper was protected while the file waited, " +
			"and no column tells its rows apart (KEY_COLUMN_REQUIRED)"}
	default:
		return false, err
	}
	if _, err := client.Do(ctx, i.Client, client.FixKey{Job: i.job.ID, Column: column},
		nil); err != nil {
		return false, err
	}
	if view, err = i.Client.Fresh(ctx); err != nil {
		return false, err
	}
	if i.known = view.Import(i.job.ID); i.known == nil || i.known.Ended != 0 {
		return false, errStopped
	}
	return i.known.Key != "", nil
}

// appendFile makes the rows of a protected scraper's run. The existing rows come first, filled from
// the file's rows with equal keys; then come rows with new keys. All are stored under the new run,
// which replaces the older runs in one step. Existing rows keep their ids. The older runs are noted
// first, so that a repeat makes the same batches.
func (i *importing) appendFile(ctx context.Context) error {
	base, err := i.base(ctx)
	if err != nil {
		return err
	}
	return i.inTurns(ctx, func() (*remainder, error) { return i.joinFile(ctx, base) },
		func(s *remainder) error {
			if err := s.rows.Each(func(_ string, place uint32, doc []byte) error {
				if place == newRow {
					return i.add(ctx, doc)
				}
				return i.carry(ctx, doc)
			}); err != nil {
				return err
			}
			return i.flush(ctx)
		})
}

// joinFile sorts the file's rows together with those of the base. It returns nil if the file is
// gone and all rows are stored.
func (i *importing) joinFile(ctx context.Context, base []ids.ID) (joined *remainder, err error) {
	byKey, err := newSorter(i.Dir, i.Disk, mergeMemory, mergeDisk)
	if err != nil {
		return nil, err
	}
	defer func() { _ = byKey.Close() }() // it was read
	inOrder, err := newSorter(i.Dir, i.Disk, mergeMemory, mergeDisk)
	if err != nil {
		return nil, err
	}
	defer func() {
		if joined == nil {
			err = errors.Join(err, inOrder.Close())
		}
	}()
	a := &appending{importing: i, byKey: byKey, inOrder: inOrder}
	ended, has := false, false
	if err := i.eachRow(ctx, a.addRow, func(read upload.Reader) error {
		ended, has = true, read.Has(i.known.Key)
		return nil
	}); err != nil || !ended {
		return nil, err
	}
	switch {
	case a.read == 0:
		return nil, upload.Nothing()
	case !has:
		return nil, &upload.Refusal{Reason: fmt.Sprintf("the file has no key column "+
			"%.60q (KEY_COLUMN_MISSING)", i.known.Key)}
	}
	from, err := i.sources(ctx, base)
	if err != nil {
		return nil, err
	}
	if err := a.addStored(ctx, from); err != nil {
		return nil, err
	}
	if err := byKey.Each(a.join); err != nil {
		return nil, err
	}
	if err := a.endKey(); err != nil {
		return nil, err
	}
	return &remainder{rows: inOrder, seq: addedSeq, from: from}, nil
}

// base returns the runs to whose rows the file's rows are added. For a moved scraper they lie in
// several groups; the file's run brings them together.
func (i *importing) base(ctx context.Context) ([]ids.ID, error) {
	if len(i.item.Progress) > 0 {
		return client.ReadMerge(i.item.Progress[1:])
	}
	view := i.Client.View()
	scraper := view.Scraper(i.job.Scraper)
	if scraper == nil {
		return nil, errStopped // it was deleted
	}
	var held []ids.ID
	for _, group := range view.GroupsOf(scraper) {
		there, err := i.Store.Holding(ctx, client.Shown(view, group, scraper.ID), client.MaxHidden)
		if err != nil {
			return nil, err
		}
		held = append(held, there...)
	}
	if len(held) >= client.MaxHidden {
		return nil, &upload.Refusal{Reason: fmt.Sprintf("the scraper has rows of %d runs or more; "+
			"delete those of some", client.MaxHidden)}
	}
	if err := i.findNewest(ctx, view, held); err != nil {
		return nil, err
	}
	slices.SortFunc(held, func(a, b ids.ID) int { return bytes.Compare(a[:], b[:]) })
	i.progress = client.AppendMerge([]byte{1}, held) // one byte marks the list as noted
	return nil, errNoted
}

// findNewest refuses a file if the scraper's newest rows are gone and nobody deleted them. A
// restore brings back runs whose rows were removed because newer ones had replaced them. The file
// alone must not pass for the scraper's rows.
func (i *importing) findNewest(ctx context.Context, view *client.View, held []ids.ID) error {
	scraper := view.Scraper(i.job.Scraper)
	if scraper == nil {
		return nil // it was deleted, and the run is stopped
	}
	newest, err := i.History.NewestWithRows(ctx, view, scraper)
	if err != nil || newest == nil || slices.Contains(held, newest.ID) {
		return err
	}
	return &upload.Refusal{Reason: fmt.Sprintf("the %d rows of run %s are lost, as after a restore; "+
		"delete what is left of that run, and send a file with all rows", newest.Items, newest.ID)}
}

// sources returns where the rows of runs lie.
func (i *importing) sources(ctx context.Context, runs []ids.ID) (from []source, err error) {
	view := i.Client.View()
	for _, run := range runs {
		job, err := i.History.Run(ctx, view, run)
		if err != nil {
			return nil, err
		}
		if job == nil {
			return nil, &upload.Refusal{Reason: changedMeanwhile}
		}
		from = append(from, source{job.Group, job.Scraper, run})
	}
	return from, nil
}

// The places of rows in the sorters.
const (
	fromFile, stored = 0, 1 // by key: a file's row comes before the rows that it fills
	carriedRow       = 0    // in the final order
	newRow           = 1
)

// appending joins a file's rows with the existing ones.
type appending struct {
	*importing
	byKey, inOrder *sorter

	read uint64 // rows of the file
	rows uint64 // existing rows

	key   string
	given []byte // number and text of the file's row with the key; nil: none
	met   bool   // an existing row has the key
}

// numbered prefixes a row with its number.
func numbered(n uint64, doc []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(doc)), n), doc...)
}

// addRow adds a row of the file. It skips a row without a key.
func (a *appending) addRow(row upload.Row) error {
	n := a.read
	a.read++
	for _, cell := range row {
		if cell.Name == a.known.Key {
			if key := strings.TrimSpace(cell.Text); key != "" {
				return a.byKey.Add(key, fromFile, numbered(n, row.AppendJSON(nil)))
			}
		}
	}
	return nil
}

// addStored adds the rows of the base.
func (a *appending) addStored(ctx context.Context, base []source) error {
	view := a.Client.View()
	for _, from := range base {
		scope := client.Shown(view, from.group, from.scraper)
		scope.Jobs = []ids.ID{from.run}
		sum, err := a.Store.Recount(ctx, from.run)
		if err != nil {
			return err
		}
		before := a.rows
		if err := a.eachStored(ctx, scope, a.addDocument); err != nil {
			return err
		}
		if a.rows-before != sum.Items {
			return &upload.Refusal{Reason: changedMeanwhile}
		}
	}
	return nil
}

// addDocument adds a row of the base.
func (a *appending) addDocument(doc []byte) error {
	key, err := textOf(doc, a.known.Key)
	if err != nil {
		return fmt.Errorf("a stored row: %w", err)
	}
	n := a.rows
	a.rows++
	if key == "" {
		return a.emit(n, carriedRow, doc)
	}
	return a.byKey.Add(key, stored, numbered(n, doc))
}

// eachStored visits the documents of a scope while the run is still open.
func (i *importing) eachStored(ctx context.Context, scope rowstore.Scope,
	visit func(doc []byte) error) error {
	upto, err := i.Store.Horizon(ctx)
	if err != nil {
		return err
	}
	q := rowstore.ScanQuery{Scope: scope, Upto: upto, Limit: scannedRows, Bytes: scannedBytes}
	for q.After < upto {
		if err := i.open(); err != nil {
			return err
		}
		docs, last, err := i.Store.Scan(ctx, q)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if err := visit(doc); err != nil {
				return err
			}
		}
		q.After = last
	}
	return nil
}

// emit adds a row to inOrder under its number.
func (a *appending) emit(n uint64, place uint32, doc []byte) error {
	return a.inOrder.Add(string(binary.BigEndian.AppendUint64(nil, n)), place, doc)
}

// join takes the rows key by key, first the file's. Of the file's rows with a key the first counts.
func (a *appending) join(key string, place uint32, row []byte) error {
	if key != a.key {
		if err := a.endKey(); err != nil {
			return err
		}
		a.key = key
	}
	if place == fromFile {
		if a.given == nil {
			a.given = row
		}
		return nil
	}
	a.met = true
	n, doc := binary.BigEndian.Uint64(row), row[8:]
	if a.given != nil {
		filled, err := fillRow(doc, a.given[8:])
		if err != nil {
			return err
		}
		doc = filled
	}
	return a.emit(n, carriedRow, doc)
}

// endKey adds the file's row if its key is new.
func (a *appending) endKey() error {
	given, met := a.given, a.met
	a.given, a.met = nil, false
	if given == nil || met {
		return nil
	}
	return a.emit(a.rows+binary.BigEndian.Uint64(given), newRow, given[8:])
}

// fillRow returns a stored document, filled from row where a field is missing or empty. Existing
// values stay, and the server's members stay at the end.
func fillRow(doc, row []byte) ([]byte, error) {
	var names, servers []string
	values := map[string]json.RawMessage{}
	err := eachField(doc, func(name string, value json.RawMessage) error {
		values[name] = slices.Clone(value)
		if model.IsServerKey(name) {
			servers = append(servers, name)
		} else {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("a stored row: %w", err)
	}
	changed := false
	err = eachField(row, func(name string, value json.RawMessage) error {
		known, has := values[name]
		if has && !isEmpty(known) {
			return nil
		}
		if changed = true; !has {
			names = append(names, name)
		}
		values[name] = slices.Clone(value)
		return nil
	})
	if err != nil || !changed {
		return doc, err
	}
	filled := appendObject(nil, append(names, servers...), values)
	switch {
	case len(names) > upload.MaxColumns:
		return nil, &upload.Refusal{Reason: fmt.Sprintf("a row would have more than %d columns "+
			"with those that the file adds", upload.MaxColumns)}
	case len(filled) > upload.MaxRow && sumValues(names, values) > upload.MaxRow:
		return nil, &upload.Refusal{Reason: fmt.Sprintf("a row would have more than %d bytes with "+
			"what the file adds", upload.MaxRow)}
	}
	return filled, nil
}

// sumValues returns the size of named values in bytes, as a file has them: without names, quotes
// and escapes.
func sumValues(names []string, values map[string]json.RawMessage) (sum int) {
	for _, name := range names {
		var text string
		if value := values[name]; json.Unmarshal(value, &text) == nil {
			sum += len(text)
		} else {
			sum += len(value)
		}
	}
	return sum
}
