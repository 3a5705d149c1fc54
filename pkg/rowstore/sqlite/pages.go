package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

// maxSpan bounds the rows of one span, and thus the work of one turn of a removal.
const maxSpan = 2_048

// Numbers of columns that an insert sets in pages and rows.
const (
	recordWidth = 10
	rowWidth    = 3
)

// PutPages implements rowstore.Pages.
func (s *Store) PutPages(ctx context.Context, pages []rowstore.PageWrite) ([]*model.Receipt,
	error) {
	rows := 0
	for i := range pages {
		rows += len(pages[i].Page.Rows)
	}
	b := batch{store: s, w: s.writer, pages: pages, receipts: make([]*model.Receipt, len(pages)),
		records: make([]any, 0, recordWidth*len(pages)), rows: make([]any, 0, rowWidth*rows)}
	groupOf := map[ids.ID]int{}
	for i, write := range pages {
		if err := write.Check(); err != nil {
			return nil, err
		}
		g, ok := groupOf[write.Job.ID]
		if !ok {
			g = len(b.groups)
			groupOf[write.Job.ID] = g
			b.groups = append(b.groups, group{job: write.Job})
		}
		b.groups[g].pages = append(b.groups[g].pages, i)
	}
	if err := s.writer.do(ctx, s.writer.pages, b.write); err != nil {
		return nil, err
	}
	return b.receipts, nil
}

// batch is one PutPages under way.
type batch struct {
	store    *Store
	w        *writer
	pages    []rowstore.PageWrite
	receipts []*model.Receipt
	groups   []group

	records, rows []any // to insert
	place         int64 // newest place assigned
}

// group is the pages of one job in a batch, by index.
type group struct {
	job   rowstore.Job
	pages []int
}

// write runs in the writer's turn. It writes job by job, so that the rows of a job lie together.
func (b *batch) write() error {
	b.place = b.w.place
	for _, g := range b.groups {
		if err := b.writeJob(g); err != nil {
			return err
		}
	}
	if err := b.w.insert("pages", "job, unit, outcome, items, place, quantity, price, hash, "+
		"last, content", b.records); err != nil {
		return fmt.Errorf("page records: %w", err)
	}
	if err := b.w.insert("rows", "place, at, doc", b.rows); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	if b.place == b.w.place {
		return nil
	}
	if _, err := b.w.exec(`UPDATE horizon SET place = ?`, b.place); err != nil {
		return fmt.Errorf("horizon: %w", err)
	}
	// If the commit fails, these places stay unused: a gap does no harm.
	b.w.place = b.place
	return nil
}

func (b *batch) writeJob(g group) error {
	if b.w.sealing[g.job.ID] > 0 {
		return nil
	}
	job, sealed, err := b.w.job(g.job)
	if err != nil || sealed {
		return err
	}
	standing, err := b.standing(job, g)
	if err != nil {
		return fmt.Errorf("known units: %w", err)
	}
	delivered, err := b.delivered(job, g)
	if err != nil {
		return fmt.Errorf("known addresses: %w", err)
	}
	ends, err := b.ends(job, g)
	if err != nil {
		return fmt.Errorf("ended chains: %w", err)
	}
	span := span{job: job, first: b.place + 1}
	for _, i := range g.pages {
		page := b.pages[i].Page
		if page.Outcome == model.Cancelled { // it has no record and proves nothing
			b.receipts[i] = record.Receipt(page)
			continue
		}
		if receipt, ok := standing[page.Unit]; ok {
			b.receipts[i] = receipt
			continue
		}
		if end, ok := ends[page.Unit.Seq]; ok && end < page.Unit.Page {
			continue
		}
		if page.URLHash != 0 {
			if _, ok := delivered[page.URLHash]; ok {
				page = record.Duplicate(page)
			} else if page.Outcome == model.Delivered {
				delivered[page.URLHash] = struct{}{}
			}
		}
		if err := b.page(job, page, &span); err != nil {
			return err
		}
		b.receipts[i] = record.Receipt(page)
		standing[page.Unit] = b.receipts[i]
		if page.Last {
			ends[page.Unit.Seq] = page.Unit.Page
		}
	}
	if err := b.endSpan(&span); err != nil {
		return err
	}
	if span.rows == 0 {
		return nil
	}
	_, err = b.w.exec(`UPDATE jobs SET rows = rows + ? WHERE id = ?`, span.rows, job)
	return err
}

// span is a range of adjacent rows of one job.
type span struct {
	job, first, at int64
	rows           int // of all of the job's spans in this batch
}

// page queues the record and the rows of a page.
func (b *batch) page(job int64, page *model.Page, span *span) error {
	content, err := b.store.encode.Encode(page)
	if err != nil {
		return err
	}
	b.records = append(b.records, job, unitKey(page.Unit), int64(page.Outcome),
		int64(len(page.Rows)), b.place+1,
		int64(page.Quantity), page.PriceRow, int64(page.URLHash), page.Last, content)
	at := any(page.At) // boxed once for all rows
	for _, row := range page.Rows {
		b.place++
		b.rows = append(b.rows, b.place, at, string(row))
	}
	if len(page.Rows) > 0 {
		span.at = max(span.at, page.At)
		span.rows += len(page.Rows)
	}
	if b.place-span.first >= maxSpan {
		return b.endSpan(span)
	}
	return nil
}

// endSpan writes the span if it has rows, and begins the next one.
func (b *batch) endSpan(span *span) error {
	if b.place < span.first {
		return nil
	}
	if _, err := b.w.exec(`INSERT INTO spans (job, first, last, at) VALUES (?, ?, ?, ?)`, span.job,
		span.first, b.place, span.at); err != nil {
		return fmt.Errorf("span: %w", err)
	}
	span.first, span.at = b.place+1, 0
	return nil
}

// standing returns the receipts of the group's units that have a record.
func (b *batch) standing(job int64, g group) (map[model.Unit]*model.Receipt, error) {
	keys := make([]int64, len(g.pages))
	for i, page := range g.pages {
		keys[i] = unitKey(b.pages[page].Page.Unit)
	}
	standing := map[model.Unit]*model.Receipt{}
	err := b.w.query(func(rows *sql.Rows) error {
		receipt, err := scanReceipt(rows, g.job.ID)
		if err == nil {
			standing[receipt.Unit] = &receipt
		}
		return err
	}, `SELECT `+receiptColumns+
		` FROM pages WHERE job = ? AND unit IN (SELECT value FROM json_each(?))`,
		job, numberList(keys))
	return standing, err
}

// delivered returns those of the group's URL hashes under which the job has a delivered page.
func (b *batch) delivered(job int64, g group) (map[uint64]struct{}, error) {
	var hashes []int64
	for _, page := range g.pages {
		if hash := b.pages[page].Page.URLHash; hash != 0 {
			hashes = append(hashes, int64(hash))
		}
	}
	delivered := map[uint64]struct{}{}
	if len(hashes) == 0 {
		return delivered, nil
	}
	err := b.w.query(func(rows *sql.Rows) error {
		var hash int64
		err := rows.Scan(&hash)
		delivered[uint64(hash)] = struct{}{}
		return err
	}, `SELECT hash FROM pages INDEXED BY pages_delivered
		WHERE job = ? AND outcome = 1 AND hash <> 0 AND hash IN (SELECT value FROM json_each(?))`, job, numberList(hashes))
	return delivered, err
}

// ends returns where the chains of the group's pages end, if their last pages are stored.
func (b *batch) ends(job int64, g group) (map[uint32]uint32, error) {
	var seqs []int64
	for _, page := range g.pages {
		if unit := b.pages[page].Page.Unit; unit.Page > 0 {
			seqs = append(seqs, int64(unit.Seq))
		}
	}
	ends := map[uint32]uint32{}
	if len(seqs) == 0 {
		return ends, nil
	}
	err := b.w.query(func(rows *sql.Rows) error {
		var key int64
		err := rows.Scan(&key)
		ends[unitOf(key).Seq] = unitOf(key).Page
		return err
	}, `SELECT coalesce((SELECT unit FROM pages WHERE job = ?1 AND unit = seqs.value << 32 AND last <> 0),
		(SELECT min(unit) FROM pages INDEXED BY pages_ended WHERE job = ?1 AND last <> 0 AND unit & 0xffffffff <> 0
			AND unit BETWEEN seqs.value << 32 AND (seqs.value << 32) + 0xffffffff)) AS ended
		FROM json_each(?2) AS seqs WHERE ended IS NOT NULL`, job, numberList(seqs))
	return ends, err
}

// job finds or assigns the number of a job.
func (w *writer) job(job rowstore.Job) (number int64, sealed bool, err error) {
	find := func() error {
		return w.query(func(rows *sql.Rows) error { return rows.Scan(&number, &sealed) },
			`SELECT id, sealed FROM jobs WHERE job = ?`, job.ID[:])
	}
	if err = find(); err != nil || number != 0 {
		return number, sealed, err
	}
	_,
		err = w.exec(`INSERT INTO jobs (job, customer, grp, scraper, started) VALUES (?, ?, ?, ?, ?)`,
		job.ID[:], job.Customer, job.Group[:], job.Scraper[:], job.Started)
	if err != nil {
		return 0, false, fmt.Errorf("job %s: %w", job.ID, err)
	}
	return number, false, find()
}

// DeleteJob implements rowstore.Pages. Each turn removes one span, or some thousand records. The
// job stays known as sealed or not.
func (s *Store) DeleteJob(ctx context.Context, job ids.ID, records bool) error {
	err := s.deleteBy(ctx, job, s.writer.deleteSpan)
	if err != nil || !records {
		return err
	}
	if err := s.deleteBy(ctx, job, s.writer.deleteKept); err != nil {
		return err
	}
	return s.deleteBy(ctx, job, s.writer.deleteRecords)
}

// deleteBy repeats turn for a job, until nothing is left to remove.
func (s *Store) deleteBy(ctx context.Context, job ids.ID,
	turn func(job int64) (more bool, err error)) error {
	for more := true; more; {
		err := s.writer.do(ctx, s.writer.bulk, func() error {
			number, err := s.writer.find(job)
			if err != nil || number == 0 {
				more = false
				return err
			}
			more, err = turn(number)
			return err
		})
		if err != nil {
			return fmt.Errorf("row store: delete %s: %w", job, err)
		}
	}
	return nil
}

// JobsSince implements rowstore.Pages.
func (s *Store) JobsSince(ctx context.Context, started int64,
	visit func(rowstore.Job) error) error {
	rows, err := s.loop.QueryContext(ctx,
		selectJobs+` WHERE started >= ? AND customer <> ''`, started)
	err = each(rows, err, func(rows *sql.Rows) error {
		job, err := scanJob(rows)
		if err != nil {
			return err
		}
		return visit(job)
	})
	if err != nil {
		return fmt.Errorf("row store: jobs of late: %w", err)
	}
	return nil
}

// selectJobs selects the columns that scanJob reads.
const selectJobs = `SELECT job, customer, grp, scraper, started FROM jobs`

// scanJobs collects the results of a query with selectJobs.
func scanJobs(rows *sql.Rows, err error) (jobs []rowstore.Job, _ error) {
	err = each(rows, err, func(rows *sql.Rows) error {
		job, err := scanJob(rows)
		jobs = append(jobs, job)
		return err
	})
	return jobs, err
}

func scanJob(rows *sql.Rows) (job rowstore.Job, err error) {
	var id, group, scraper sql.RawBytes
	if err := rows.Scan(&id, &job.Customer, &group, &scraper, &job.Started); err != nil {
		return job, err
	}
	job.ID, job.Group, job.Scraper = ids.ID(id), ids.ID(group), ids.ID(scraper)
	return job, nil
}

// deleteSpan removes one span of a job with its rows.
func (w *writer) deleteSpan(job int64) (more bool, err error) {
	var first, last int64
	err = w.query(func(rows *sql.Rows) error { return rows.Scan(&first, &last) },
		`SELECT first, last FROM spans WHERE job = ? LIMIT 1`, job)
	if err != nil || first == 0 {
		return false, err
	}
	removed, err := w.exec(`DELETE FROM rows WHERE place BETWEEN ? AND ?`, first, last)
	if err != nil {
		return false, err
	}
	if _, err := w.exec(`DELETE FROM spans WHERE job = ? AND first = ?`, job, first); err != nil {
		return false, err
	}
	_, err = w.exec(`UPDATE jobs SET rows = rows - ? WHERE id = ?`, removed, job)
	return true, err
}

// deleteRecords removes some page records of a job.
func (w *writer) deleteRecords(job int64) (more bool, err error) {
	removed,
		err := w.exec(`DELETE FROM pages WHERE job = ?1 AND unit IN (SELECT unit FROM pages WHERE job = ?1 LIMIT ?2)`,
		job, maxSpan)
	return removed > 0, err
}

// deleteKept removes what Retention keeps of a job's records.
func (w *writer) deleteKept(job int64) (more bool, err error) {
	if _, err := w.exec(`DELETE FROM sums WHERE job = (SELECT job FROM jobs WHERE id = ?)`,
		job); err != nil {
		return false, err
	}
	return w.deleteCharged(job)
}

// deleteCharged removes the addresses that a job was charged for.
func (w *writer) deleteCharged(job int64) (more bool, err error) {
	_, err = w.exec(`DELETE FROM charged
		WHERE (scraper, job) = (SELECT scraper, job FROM jobs WHERE id = ?)`, job)
	return false, err
}

// find returns a job's number, 0 if it is unknown.
func (w *writer) find(job ids.ID) (number int64, err error) {
	err = w.query(func(rows *sql.Rows) error { return rows.Scan(&number) },
		`SELECT id FROM jobs WHERE job = ?`, job[:])
	return number, err
}
