package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/upload"
	"shoal.dev/shoal/pkg/work"
)

// A batch of an upload's rows is one page record. It ends after importedRows rows, or with the row
// that reaches importedBytes. So the file alone decides, and a repeat makes the same unit.
const (
	importedRows  = 2_000
	importedBytes = 1_000_000
)

const (
	heavyRests   = 2 * time.Second  // how long a heavy upload waits for earlier ones
	shortRests   = 10 * time.Second // how long uploads wait while disks are short
	advanceEvery = time.Second      // how often the run says how many rows it has
	knownAtOnce  = 4_096            // page records that are looked up at a time
	turnTime     = 5 * time.Minute  // for storing new rows before other items get their turn
)

// gone is why an upload fails when its file is missing.
const gone = "the uploaded file is no longer available; upload it again"

// Importing is what an import needs from the row store.
type Importing interface {
	PutPages(ctx context.Context, pages []rowstore.PageWrite) ([]*model.Receipt, error)
	Records(ctx context.Context, job ids.ID, units []model.Unit) ([]model.Receipt, error)
	Seal(ctx context.Context, job ids.ID, settled func(unit model.Unit, last bool) bool) error
	Sealed(ctx context.Context, job ids.ID) (bool, error)
	Recount(ctx context.Context, job ids.ID) (rowstore.Recount, error)
	Holding(ctx context.Context, scope rowstore.Scope, most int) ([]ids.ID, error)
	Horizon(ctx context.Context) (int64, error)
	Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error)
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
}

// Files is the store of uploaded files until they are imported.
type Files interface {
	Open(ctx context.Context, key blobstore.Key, from, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key blobstore.Key) error
}

// ImportConfig configures Import. Point may be left out.
type ImportConfig struct {
	Client interface {
		client.Proposer
		client.Reader
	}
	Store   Importing
	History *client.History
	Files   Files // nil: there are no uploads here
	IDs     ids.Source
	Clock   clock.Clock
	Dir     string // where spreadsheets are unpacked; "": the system's directory for such files
	// Disk is the disk of Dir; sorted rows leave its floor free. nil: no check.
	Disk *telemetry.Disk
	// Point is called at named places, so that tests can end the process there. They are
	// "work.KIND.before_put", "work.KIND.after_put", "work.KIND.after_seal" and
	// "work.KIND.after_end" of the kinds import, merge and match.
	Point func(name string)

	remainders *remainders
}

// storing returns a kind of work that stores the rows of a run without tasks. read reads the source
// and puts its rows in batches, the same ones each time.
func (c ImportConfig) storing(kind string, read func(*importing, context.Context) error) work.Kind {
	if c.Point == nil {
		c.Point = func(string) {}
	}
	c.remainders = newRemainders(c.Clock)
	return work.Kind{Name: kind, Held: 8, PerCustomer: 1,
		// Ready is called again and again, even without work, so it sweeps.
		Ready: func() bool { c.remainders.sweep(); return true },
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			item.Kind = kind
			outcome, err := c.step(ctx, item, read)
			if err != nil {
				return outcome, fmt.Errorf("ingest: %s %s: %w", kind, item.ID, err)
			}
			return outcome, nil
		}}
}

// Import turns the rows of an uploaded file into those of a run (specification 4.9). Each batch of
// rows is the page record of a unit, and what is stored stays. So a step begins with the file's
// first row, and gives the same result beside a late one of another owner. Once all rows are
// stored, the run is sealed, and one command shows it and hides what it replaces. Hidden rows are
// removed with deleted ones (Removal).
func Import(config ImportConfig) work.Kind {
	kind := config.storing(work.Import, (*importing).readFile)
	sweep := kind.Ready
	kind.AtOnce, kind.Ready = 2, func() bool { return sweep() && config.Files != nil }
	return kind
}

// step takes a run to its end, unless the run has to wait or its turn is over.
func (c *ImportConfig) step(ctx context.Context, item work.Item,
	read func(*importing, context.Context) error) (work.Outcome, error) {
	view, err := c.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	i := &importing{ImportConfig: c, item: item, known: view.Import(item.ID),
		job: view.Job(item.ID), told: c.Clock.Now()}
	switch {
	case i.known == nil || i.known.Ended != 0 || i.job == nil:
		if left := c.remainders.takeOut(item.ID); left != nil {
			left.close()
		}
		return work.Done(), c.drop(ctx, item)
	case view.IsShort():
		c.remainders.dropAll()
		return work.Rest(item.Progress, shortRests), nil // what is noted stays noted
	case i.known.Heavy && waits(view, item.ID):
		return work.Rest(item.Progress, heavyRests), nil
	}
	i.stamp = rowstore.Job{ID: i.job.ID, Customer: i.job.Customer, Group: i.job.Group,
		Scraper: i.job.Scraper, Started: i.job.Started * 1000}
	refusal := (*upload.Refusal)(nil)
	switch err := read(i, ctx); {
	case errors.As(err, &refusal):
		return i.end(ctx, client.EndImport{Job: i.job.ID, Message: refusal.Reason})
	case errors.Is(err, errStopped):
		return work.Done(), c.drop(ctx, item)
	case errors.Is(err, errNoRoom): // a failure of this node, reported as such
		c.remainders.dropAll()
		return work.Outcome{}, err
	case errors.Is(err, errTurn): // the next turn finds what is stored
		return work.Rest(item.Progress, 0), nil
	case errors.Is(err, errNoted):
		return work.Rest(i.progress, 0), nil // it is noted before the first batch depends on it
	case err != nil:
		return work.Outcome{}, err
	}
	return i.complete(ctx)
}

// waits says whether a heavy upload has to wait, because as many earlier ones as are imported at a
// time are pending. An upload whose steps fail holds up nobody.
func waits(view *client.View, job ids.ID) bool {
	before, most := uint32(0), view.Settings().Uploads.Whole().Heavy
	view.HeavyImports(func(i *client.Import) bool {
		if i.Job == job {
			return false
		}
		if item := view.WorkItem(i.Job); item != nil && item.Failures == 0 {
			before++
		}
		return before < most
	})
	return before >= most
}

// keyOf returns the blob key of an upload's file.
func keyOf(customer string, job ids.ID) blobstore.Key {
	return blobstore.Key{Kind: blobstore.Uploads, Owner: customer, ID: job.String()}
}

// drop removes a file that nobody needs any more.
func (c *ImportConfig) drop(ctx context.Context, item work.Item) error {
	if item.Kind != work.Import {
		return nil
	}
	return c.Files.Delete(ctx, keyOf(item.Customer, item.ID))
}

// end reports the end of a run to the state.
func (i *importing) end(ctx context.Context, how client.EndImport) (work.Outcome, error) {
	if _, err := client.Do(ctx, i.Client, how, nil); err != nil {
		return work.Outcome{}, err
	}
	i.point("after_end")
	view, err := i.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	if known := view.Import(i.job.ID); known != nil && known.Ended == 0 {
		return work.Outcome{}, errKeyed
	}
	return work.Done(), i.drop(ctx, i.item)
}

// point is where tests may end the process.
func (i *importing) point(name string) { i.Point("work." + i.item.Kind + "." + name) }

// errKeyed says that another owner now adds the rows, though this one had begun to replace others.
var errKeyed = errors.New("the upload got a key column meanwhile")

// errStopped says that the upload is no longer open.
var errStopped = errors.New("the upload was stopped")

// errTurn ends a step whose time is over.
var errTurn = errors.New("the turn is over")

// turn is the time of one step. It begins when the step first stores something, however late that
// is. So each turn makes progress.
type turn struct{ began time.Time }

// stored records when something new was stored. It returns errTurn when the turn is over.
func (t *turn) stored(now time.Time) error {
	switch {
	case t.began.IsZero():
		t.began = now
	case now.Sub(t.began) >= turnTime:
		return errTurn
	}
	return nil
}

// importing is one step of a run without tasks.
type importing struct {
	*ImportConfig
	item  work.Item
	known *client.Import
	job   *client.Job
	stamp rowstore.Job

	seq    uint32                // of the next batch
	stored map[model.Unit]uint32 // the rows of those looked-up units that are stored
	rows   uint64
	told   time.Time // when the state was last told of rows
	turn   turn

	batch    [][]byte // rows not put yet
	carried  [][]byte // for each row, the document it already was; nil: a new row
	size     int      // of batch, in bytes
	docs     []byte   // backing bytes for the file's rows of the batch
	sums     profile.Sums
	progress []byte // to be noted (errNoted)
}

// add adds a row, and puts the batch when it is full.
func (i *importing) add(ctx context.Context, row []byte) error { return i.addRow(ctx, row, nil) }

// carry adds a document that was stored before.
func (i *importing) carry(ctx context.Context, doc []byte) error { return i.addRow(ctx, doc, doc) }

func (i *importing) addRow(ctx context.Context, row, carried []byte) error {
	i.batch, i.carried = append(i.batch, row), append(i.carried, carried)
	if i.size += len(row); len(i.batch) < importedRows && i.size < importedBytes {
		return nil
	}
	return i.flush(ctx)
}

// flush puts the remaining rows.
func (i *importing) flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	batch := i.batch
	i.batch, i.size = nil, 0
	err := i.put(ctx, batch)
	i.carried, i.docs = i.carried[:0], i.docs[:0]
	return err
}

// readFile stores those rows of the file that are not stored yet. If the file is gone and the run
// was sealed, all are stored.
func (i *importing) readFile(ctx context.Context) error {
	keyed, err := i.keyed(ctx)
	if err != nil {
		return err
	}
	if keyed {
		return i.appendFile(ctx)
	}
	return i.eachRow(ctx, func(row upload.Row) error {
		from := len(i.docs)
		i.docs = row.AppendJSON(i.docs)
		return i.add(ctx, i.docs[from:len(i.docs):len(i.docs)])
	}, func(upload.Reader) error {
		if err := i.flush(ctx); err != nil {
			return err
		}
		if i.rows == 0 {
			return upload.Nothing()
		}
		return nil
	})
}

// eachRow visits the rows of the file, and then its end.
func (i *importing) eachRow(ctx context.Context, visit func(upload.Row) error,
	end func(read upload.Reader) error) error {
	file, err := i.Files.Open(ctx, keyOf(i.job.Customer, i.job.ID), 0, -1)
	if errors.Is(err, blobstore.ErrNotFound) {
		return i.withoutFile(ctx)
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read-only
	rows, err := upload.NewReader(upload.Format(i.known.Format), file, i.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // read-only
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return end(rows)
		}
		if err != nil {
			return err
		}
		if err := visit(row); err != nil {
			return err
		}
	}
}

// withoutFile counts what is stored of an upload whose file is gone.
func (i *importing) withoutFile(ctx context.Context) error {
	sealed, err := i.Store.Sealed(ctx, i.job.ID)
	if err != nil {
		return err
	}
	sum, err := i.Store.Recount(ctx, i.job.ID)
	if err != nil {
		return err
	}
	if i.rows = sum.Items; !sealed || i.rows == 0 {
		return &upload.Refusal{Reason: gone}
	}
	return nil
}

// put stores a batch unless it is already stored, as long as the upload is open.
func (i *importing) put(ctx context.Context, batch [][]byte) error {
	if err := i.open(); err != nil {
		return err
	}
	unit := model.Unit{Seq: i.seq}
	i.seq++
	i.rows += uint64(len(batch))
	rows, there, err := i.has(ctx, unit)
	switch {
	case err != nil:
		return err
	case there && int(rows) != len(batch): // this binary reads values, and so batches, differently
		return &upload.Refusal{Reason: "another version of the server began to read it: start again"}
	case there:
		return nil
	}
	page := &model.Page{Job: i.job.ID, Unit: unit, Fetch: i.IDs.New(), Outcome: model.Delivered,
		At: i.stamp.Started, Last: true, Rows: batch}
	sumRows(page, &i.sums)
	completeRows(page, i.stamp)
	for n, doc := range i.carried {
		if doc != nil { // it has the server's keys, and keeps them
			page.Rows[n] = doc
		}
	}
	i.point("before_put")
	receipts, err := i.Store.PutPages(ctx, []rowstore.PageWrite{{Job: i.stamp, Page: page}})
	if err != nil {
		return err
	}
	if receipts[0] == nil {
		return i.sealed(ctx, unit)
	}
	i.point("after_put")
	if err := i.advance(ctx); err != nil {
		return err
	}
	return i.turn.stored(i.Clock.Now())
}

// advance reports to the state from time to time how many rows are stored.
func (i *importing) advance(ctx context.Context) error {
	now := i.Clock.Now()
	if now.Sub(i.told) < advanceEvery {
		return nil
	}
	i.told = now
	_, err := client.Do(ctx, i.Client, client.AdvanceImport{Job: i.job.ID, Items: i.rows}, nil)
	return err
}

// complete seals an upload whose rows are all stored, and shows them.
func (i *importing) complete(ctx context.Context) (work.Outcome, error) {
	settled := (func(model.Unit, bool) bool)(nil)
	if i.known.Key != "" {
		settled = func(unit model.Unit, _ bool) bool { return unit.Seq >= addedSeq }
	}
	if err := i.Store.Seal(ctx, i.job.ID, settled); err != nil {
		return work.Outcome{}, err
	}
	i.point("after_seal")
	hides, err := i.replaced(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	return i.end(ctx, client.EndImport{Job: i.job.ID, Items: i.rows, Hides: hides,
		Key: i.known.Key})
}

// replaced returns the scraper's runs with rows that this run replaces: all but the newest earlier
// ones that are kept beside it.
func (i *importing) replaced(ctx context.Context) ([]ids.ID, error) {
	if i.known.Key != "" {
		return i.base(ctx)
	}
	view, err := i.Client.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	scraper := view.Scraper(i.job.Scraper)
	if scraper == nil {
		return nil, nil // it was deleted, and the run is stopped
	}
	count := client.Retained(view, scraper)
	if count == 0 {
		return nil, nil
	}
	scope := rowstore.Scope{Scraper: scraper.ID, Without: []ids.ID{i.job.ID}}
	err = i.History.ScraperRuns(ctx, view, scraper.ID, func(job *client.Job) bool {
		if len(scope.Without) == count {
			return false
		}
		if client.Replaces(view, job, scraper) {
			scope.Without = append(scope.Without, job.ID)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	var held []ids.ID
	for _, scope.Group = range view.GroupsOf(scraper) { // it may have been moved
		there, err := i.Store.Holding(ctx, scope, client.MaxHidden)
		if err != nil {
			return nil, err
		}
		held = append(held, there...)
	}
	var older []ids.ID // none that a restore undid
	for _, id := range held {
		job, err := i.History.Run(ctx, view, id)
		if err != nil {
			return nil, err
		}
		if job != nil && job.Closed && job.Scraper == scraper.ID && client.Newer(i.job, job) {
			older = append(older, id)
		}
	}
	return older, nil
}
