package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/record"
)

// Bounds of one insert, which the server commits as a whole.
const (
	maxRows = 100_000 // except for a single larger page
	// Fields are sent in addition to documents, so a block has more than twice the bytes of its
	// documents. The client cannot send 128 MiB.
	maxBytes = 32 << 20
	rounds   = 5 // of looking, inserting and looking again
)

var errUnsettled = errors.New("row store: other processes keep storing the same pages")

// home is the primary key's prefix for a job's rows.
type home struct{ group, scraper ids.ID }

// PutPages implements rowstore.Pages. Each insert is atomic for the jobs that started in the same
// week (in the old table: month).
func (s *Store) PutPages(ctx context.Context, pages []rowstore.PageWrite) ([]*model.Receipt,
	error) {
	for i := range pages {
		if err := pages[i].Check(); err != nil {
			return nil, err
		}
	}
	receipts := make([]*model.Receipt, len(pages))
	for i := 0; i < len(pages); {
		rows, size, from := 0, 0, i
		for ; i < len(pages) &&
			(i == from || rows+len(pages[i].Page.Rows) < maxRows && size < maxBytes); i++ {
			page := pages[i].Page
			rows += 1 + len(page.Rows)
			for _, row := range page.Rows {
				size += len(row)
			}
		}
		b := batch{store: s, pages: pages[from:i], receipts: receipts[from:i]}
		if err := b.put(ctx); err != nil {
			return nil, fmt.Errorf("row store: pages: %w", err)
		}
	}
	return receipts, nil
}

// batch holds the pages of one insert.
type batch struct {
	store    *Store
	pages    []rowstore.PageWrite
	receipts []*model.Receipt
	round    int
}

// unitKey names a unit among all jobs.
type unitKey struct {
	job  ids.ID
	unit model.Unit
}

type hashKey struct {
	job  ids.ID
	hash uint64
}

// stored is a record as a look-up returns it.
type stored struct {
	key     unitKey
	fetch   ids.ID
	block   uint64
	pos     uint32
	outcome model.Outcome
	hash    uint64
	receipt *model.Receipt
}

func (r *stored) before(other *stored) bool {
	return r.block < other.block || r.block == other.block && r.pos < other.pos
}

// put looks up which units are known, stores the others, and looks again. If another process stored
// the same, what the server committed first stands and the rest gives way.
func (b *batch) put(ctx context.Context) error {
	s := b.store
	if err := s.know(ctx, b.pages); err != nil {
		return err
	}
	for b.round = 0; b.round < rounds; b.round++ {
		look, err := s.look(ctx, b.pages)
		if err != nil {
			return err
		}
		fresh, err := b.decide(ctx, look)
		if err != nil || len(fresh) == 0 {
			return err
		}
		s.point("rowstore.before_insert")
		if err := b.insert(ctx, fresh, look); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
		s.point("rowstore.after_insert")
		if done, err := b.verify(ctx, fresh, look); done || err != nil {
			return err
		}
	}
	return errUnsettled
}

// know adds the batch's jobs to the table of jobs, which leads from a job's id to its rows.
func (s *Store) know(ctx context.Context, pages []rowstore.PageWrite) error {
	unknown := map[ids.ID]rowstore.Job{}
	for i := range pages {
		if job := pages[i].Job; !s.jobs.Contains(job.ID) {
			unknown[job.ID] = job
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	var values []string
	for _, job := range unknown {
		values = append(values, fmt.Sprintf("(%s,%s,%s,%s,%d)",
			id(job.ID), text(job.Customer), id(job.Group), id(job.Scraper), job.Started))
	}
	err := s.exec(ctx, callTimeout,
		`INSERT INTO `+s.table("jobs")+` (job, customer, grp, scraper, started) VALUES `+
			join(values, func(v string) string { return v }))
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	for _, job := range unknown {
		s.jobs.Add(job.ID, home{job.Group, job.Scraper})
	}
	return nil
}

// looked is the result of a look-up.
type looked struct {
	layout    layout
	at        time.Time // by the server's clock
	block     uint64    // newest block that all later reads have seen
	sealed    map[ids.ID]bool
	standing  map[unitKey]*stored
	delivered map[hashKey]*stored
	ends      map[seqKey]uint32
}

// seqKey names a chain among all jobs.
type seqKey struct {
	job ids.ID
	seq uint32
}

// look reads which of the pages' jobs are sealed, which of their units and addresses have a record,
// and where their chains have ended.
func (s *Store) look(ctx context.Context, pages []rowstore.PageWrite) (*looked, error) {
	var l looked
	var err error
	if l.layout, err = s.layout(ctx); err != nil {
		return nil, err
	}
	l.sealed, l.standing, l.delivered = map[ids.ID]bool{}, map[unitKey]*stored{},
		map[hashKey]*stored{}
	jobs, units, hashes := keysOf(pages)
	type state struct {
		at     time.Time
		block  uint64
		sealed []string
	}
	// The time and the block are safe because they are older than all that is read next.
	states, err := read(ctx, s,
		`SELECT now64(3), (`+s.newest(l.layout)+`), (SELECT groupArray(job) FROM `+
			s.table("jobs")+` WHERE job IN `+idSet(jobs)+` AND sealed = 1)`,
		func(rows driver.Rows) (v state, err error) {
			err = rows.Scan(&v.at, &v.block, &v.sealed)
			return v, err
		})
	if err != nil {
		return nil, fmt.Errorf("sealed jobs: %w", err)
	}
	l.at, l.block = states[0].at, states[0].block
	for _, job := range states[0].sealed {
		l.sealed[ids.ID([]byte(job))] = true
	}
	records, err := s.stored(ctx, l.layout, s.within(pages, 0)+` AND `+units, 0, true)
	if err != nil {
		return nil, fmt.Errorf("known units: %w", err)
	}
	for _, r := range records {
		if known := l.standing[r.key]; known == nil || r.before(known) {
			l.standing[r.key] = r
		}
	}
	if l.ends, err = s.ends(ctx, l.layout, pages); err != nil {
		return nil, fmt.Errorf("ended chains: %w", err)
	}
	if hashes == "" {
		return &l, nil
	}
	records, err = s.stored(ctx, l.layout,
		s.within(pages, 0)+` AND outcome = 1 AND hash IN (`+hashes+`)`, 0, false)
	if err != nil {
		return nil, fmt.Errorf("known addresses: %w", err)
	}
	l.addresses(records)
	return &l, nil
}

// ends returns where the chains of the pages end, if their last pages are stored.
func (s *Store) ends(ctx context.Context, l layout, pages []rowstore.PageWrite) (map[seqKey]uint32,
	error) {
	ends := map[seqKey]uint32{}
	var seqs []byte
	for i := range pages {
		if unit := pages[i].Page.Unit; unit.Page > 0 {
			seqs = fmt.Appendf(seqs, ",%d", unit.Seq)
		}
	}
	if len(seqs) == 0 {
		return ends, nil
	}
	records, err := s.stored(ctx, l,
		s.within(pages, 0)+fmt.Sprintf(` AND last = 1 AND seq IN (%s)`, seqs[1:]), 0, false)
	for _, r := range records {
		chain := seqKey{r.key.job, r.key.unit.Seq}
		if end, known := ends[chain]; !known || r.key.unit.Page < end {
			ends[chain] = r.key.unit.Page
		}
	}
	return ends, err
}

// addresses notes, for each address, the first page delivered under it.
func (l *looked) addresses(records []*stored) {
	for _, r := range records {
		if r.outcome != model.Delivered || r.hash == 0 {
			continue
		}
		key := hashKey{r.key.job, r.hash}
		if known := l.delivered[key]; known == nil || r.before(known) {
			l.delivered[key] = r
		}
	}
}

// keysOf returns what the look-ups ask for: jobs, a condition on units, and addresses.
func keysOf(pages []rowstore.PageWrite) (jobs []ids.ID, units, hashes string) {
	number := map[ids.ID]int{}
	known := map[unitKey]bool{}
	var seqs, hashList, ofOne, ofMany []byte
	for i := range pages {
		job, page := pages[i].Job.ID, pages[i].Page
		if _, ok := number[job]; !ok {
			number[job] = len(jobs)
			jobs = append(jobs, job)
		}
		if key := (unitKey{job, page.Unit}); !known[key] {
			known[key] = true
			seqs = fmt.Appendf(seqs, ",%d", page.Unit.Seq)
			ofOne = fmt.Appendf(ofOne, ",(%d,%d)", page.Unit.Seq, page.Unit.Page)
			ofMany = fmt.Appendf(ofMany, ",(%d,%d,%d)", number[job]+1, page.Unit.Seq,
				page.Unit.Page)
		}
		if page.URLHash != 0 {
			hashList = fmt.Appendf(hashList, ",%d", page.URLHash)
		}
	}
	if len(hashList) > 0 {
		hashes = string(hashList[1:])
	}
	units = fmt.Sprintf(`seq IN (%s) AND (seq, page) IN (%s)`, seqs[1:], ofOne[1:])
	if len(jobs) > 1 {
		units = fmt.Sprintf(`seq IN (%s) AND (job, seq, page) IN (SELECT jobs[t.1], t.2, t.3 `+
			`FROM (SELECT %s AS jobs, arrayJoin([%s]) AS t))`, seqs[1:], idArray(jobs), ofMany[1:])
	}
	return jobs, units, hashes
}

// within returns the condition that finds the pages' jobs by the primary key.
func (s *Store) within(pages []rowstore.PageWrite, kind int) string {
	type entry struct {
		list *[]ids.ID // a trial is its own scraper, so an id may be in several lists
		id   ids.ID
	}
	var groups, scrapers, jobs []ids.ID
	seen := map[entry]bool{}
	add := func(list *[]ids.ID, id ids.ID) {
		if !seen[entry{list, id}] {
			seen[entry{list, id}] = true
			*list = append(*list, id)
		}
	}
	for i := range pages {
		job := &pages[i].Job
		add(&jobs, job.ID)
		add(&groups, job.Group)
		add(&scrapers, job.Scraper)
	}
	return fmt.Sprintf(`grp IN %s AND scraper IN %s AND job IN %s AND kind = %d`,
		idSet(groups), idSet(scrapers), idSet(jobs), kind)
}

// stored reads the records in blocks after a given one; whole adds their receipts.
func (s *Store) stored(ctx context.Context, l layout, where string, after uint64, whole bool) (
	[]*stored, error) {
	var all []*stored
	for _, table := range s.tables(l) {
		newer := where
		if after > 0 {
			newer += fmt.Sprintf(` AND _block_number > %d`, after-min(after, table.base))
		}
		records, err := s.storedIn(ctx, table, newer, whole)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

func (s *Store) storedIn(ctx context.Context, from source, where string, whole bool) ([]*stored,
	error) {
	columns := `job, seq, page, fetch, _block_number, pos, outcome, hash`
	if whole {
		columns += `, items, quantity, price, last, doc`
	}
	return read(ctx, s, `SELECT `+columns+` FROM `+from.from+` WHERE `+where,
		func(rows driver.Rows) (*stored, error) {
			var r stored
			var job, fetch string
			var outcome, last uint8
			to := []any{&job, &r.key.unit.Seq, &r.key.unit.Page, &fetch, &r.block, &r.pos, &outcome,
				&r.hash}
			var full rowstore.Record
			var content string
			if whole {
				to = append(to, &full.Items, &full.Quantity, &full.PriceRow, &last, &content)
			}
			if err := rows.Scan(to...); err != nil {
				return nil, err
			}
			r.block += from.base
			r.key.job, r.fetch, r.outcome = ids.ID([]byte(job)), ids.ID([]byte(fetch)),
				model.Outcome(outcome)
			if !whole {
				return &r, nil
			}
			next, err := record.Decode([]byte(content), &full)
			r.receipt = &model.Receipt{Job: r.key.job, Unit: r.key.unit, Outcome: r.outcome,
				PriceRow: full.PriceRow,
				Quantity: full.Quantity, Items: full.Items, Last: last == 1, Next: next}
			return &r, err
		})
}

// decide answers the pages that it can, and returns the pages to store.
func (b *batch) decide(ctx context.Context, look *looked) ([]rowstore.PageWrite, error) {
	var fresh []rowstore.PageWrite
	var late []*stored
	chosen := map[unitKey]*model.Receipt{}
	for i := range b.pages {
		write := b.pages[i]
		key := unitKey{write.Job.ID, write.Page.Unit}
		if b.receipts[i] = nil; look.sealed[key.job] {
			continue
		}
		if write.Page.Outcome == model.Cancelled { // it has no record and proves nothing
			b.receipts[i] = record.Receipt(write.Page)
			continue
		}
		chain := seqKey{key.job, key.unit.Seq}
		end, ended := look.ends[chain]
		behind := ended && end < key.unit.Page
		if known := look.standing[key]; known != nil {
			// Another unit may have been first with its address, and this unit's writer died before
			// it gave way.
			first := look.delivered[hashKey{key.job, known.hash}]
			ahead := known.outcome == model.Delivered && first != nil && first.key != key &&
				first.before(known)
			// Or its chain turned out to end before it, after this batch was stored.
			cut := behind && b.round > 0 && known.fetch == write.Page.Fetch
			if !ahead && !cut || chosen[key] != nil {
				b.receipts[i] = known.receipt
				b.store.counts.known.Add(1)
				continue
			}
			late = append(late, known)
		}
		if receipt := chosen[key]; receipt != nil {
			b.receipts[i] = receipt
			continue
		}
		if behind {
			continue
		}
		if write.Page.URLHash != 0 {
			address := hashKey{key.job, write.Page.URLHash}
			if first := look.delivered[address]; first != nil && first.key != key {
				write.Page = record.Duplicate(write.Page)
			} else if write.Page.Outcome == model.Delivered {
				look.delivered[address] = &stored{key: key}
			}
		}
		b.receipts[i] = record.Receipt(write.Page)
		if write.Page.Last {
			look.ends[chain] = key.unit.Page
		}
		chosen[key] = b.receipts[i]
		fresh = append(fresh, write)
	}
	return fresh, b.store.giveWay(ctx, late)
}

// verify reads what was committed since the look-up. It reports whether every stored page exists
// and stands. It first removes pages that gave way to another process's.
func (b *batch) verify(ctx context.Context, fresh []rowstore.PageWrite, look *looked) (bool,
	error) {
	records, err := b.store.stored(ctx, look.layout, b.store.within(fresh, 0), look.block, false)
	if err != nil {
		return false, fmt.Errorf("look again: %w", err)
	}
	standing := map[unitKey]*stored{}
	for _, r := range records {
		if first := standing[r.key]; first == nil || r.before(first) {
			standing[r.key] = r
		}
	}
	first := looked{delivered: map[hashKey]*stored{}}
	first.addresses(records)
	late := func(r *stored) bool {
		address := first.delivered[hashKey{r.key.job, r.hash}]
		return r != standing[r.key] || r.outcome == model.Delivered && address != nil &&
			address.key != r.key
	}
	mine := map[unitKey]bool{}
	done := true
	for i := range fresh {
		key := unitKey{fresh[i].Job.ID, fresh[i].Page.Unit}
		r := standing[key]
		done = done && r != nil && r.fetch == fresh[i].Page.Fetch && !late(r)
		mine[key] = true
	}
	records = slices.DeleteFunc(records, func(r *stored) bool { return !mine[r.key] || !late(r) })
	return done, b.store.giveWay(ctx, records)
}

// giveWay removes records that came too late, of any jobs.
func (s *Store) giveWay(ctx context.Context, late []*stored) error {
	byJob := map[ids.ID][]mark{}
	for _, r := range late {
		byJob[r.key.job] = append(byJob[r.key.job], mark{unit: r.key.unit, block: r.block})
	}
	for job, marks := range byJob {
		s.counts.raced.Add(uint64(len(marks)))
		if err := s.remove(ctx, job, marks); err != nil {
			return err
		}
	}
	return nil
}
