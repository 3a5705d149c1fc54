package ingest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
)

// maxUnitPages bounds the pages of a unit, as fetchers do.
const maxUnitPages = 10

// readLot makes the pages of a lot and sends them on: all at once, or in parts if their rows have
// many bytes.
func (r *reextracting) readLot(ctx context.Context, b *lot, made chan<- *lot) error {
	if known := r.Client.View().Import(r.job.ID); known == nil || known.Ended != 0 {
		return errStopped
	}
	units := make([]model.Unit, len(b.records))
	for i := range b.records {
		units[i] = b.records[i].Unit
	}
	receipts, err := r.Store.Records(ctx, r.job.ID, units)
	if err != nil {
		return err
	}
	b.stored = make(map[model.Unit]*model.Receipt, len(b.records))
	for i := range receipts {
		b.stored[receipts[i].Unit] = &receipts[i]
	}
	todo := make([]int, 0, len(b.records))
	for i := range b.records {
		if b.stored[b.records[i].Unit] == nil {
			todo = append(todo, i)
		}
	}
	for {
		pages, err := r.readPages(ctx, b.records, todo)
		if err != nil {
			return err
		}
		todo = slices.DeleteFunc(todo, func(i int) bool { return pages[i] != nil })
		part := *b
		part.whole = len(todo) == 0
		part.pages = slices.DeleteFunc(pages, func(p *model.Page) bool { return p == nil })
		select {
		case made <- &part:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if part.whole {
			return nil
		}
	}
}

// readPages makes the pages of some of the records, at least one. Several readers read the bodies
// in the order in which they were kept. Once the rows have many bytes, no further page is begun: it
// is nil.
func (r *reextracting) readPages(ctx context.Context, records []rowstore.Record, which []int) (
	[]*model.Page, error) {
	round := round{reextracting: r, begun: make([]*model.Page, len(records)),
		pages: make([]*model.Page, len(records)), of: make(map[*bodies.Place]int, len(which))}
	places := make([]*bodies.Place, 0, len(which))
	for _, i := range which {
		page, place := r.page(&records[i])
		if place == nil {
			round.pages[i] = page
			continue
		}
		round.begun[i], round.of[place] = page, i
		places = append(places, place)
	}
	round.stretches = bodies.Stretches(places)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for range min(r.Readers, len(round.stretches)) {
		workers.Go(func() {
			if err := guarded(func() error { return round.work(ctx) }); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return round.pages, context.Cause(ctx)
}

// guarded turns a panic in run into an error, as for a panic in a step.
func guarded(run func() error) (err error) {
	if caught := reading.Catch(func() { err = run() }); caught != nil {
		return caught
	}
	return err
}

// round is what several readers read together.
type round struct {
	*reextracting

	begun     []*model.Page // by index of the record
	pages     []*model.Page // the complete ones
	of        map[*bodies.Place]int
	stretches []bodies.Stretch
	next      atomic.Int64 // the next stretch
	bytes     atomic.Int64 // of rows
}

// work reads one stretch after the other until none is left, or the rows have many bytes.
func (r *round) work(ctx context.Context) error {
	reader := bodies.Reader{Codec: r.codec, Source: r.Bodies}
	var sums profile.Sums
	for r.bytes.Load() < r.rowBytes {
		n := int(r.next.Add(1)) - 1
		if n >= len(r.stretches) {
			return nil
		}
		err := reader.Read(ctx, &r.stretches[n], func(at *bodies.Place, entry *bodies.Entry,
			body []byte, gone error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case r.bytes.Load() >= r.rowBytes:
				return nil
			}
			page := r.begun[r.of[at]]
			if gone != nil {
				failed(page, fault.PageBodyGone, "").Kept = nil
			} else if err := r.extract(ctx, page, entry, body); err != nil {
				return err
			}
			sumRows(page, &sums)
			completeRows(page, r.stamp)
			for _, row := range page.Rows {
				r.bytes.Add(int64(len(row)))
			}
			r.pages[r.of[at]] = page
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// page makes the page for a record. If it returns a place, the page still needs the body there. A
// page that brought no rows stays as it was: it was not paid for.
func (r *reextracting) page(of *rowstore.Record) (*model.Page, *bodies.Place) {
	p := &model.Page{Job: r.job.ID, Unit: of.Unit, Fetch: r.IDs.New(), Outcome: of.Outcome,
		Status: of.Status, URL: of.URL, Final: of.Final, Tries: of.Tries, Bytes: of.Bytes,
		Millis: of.Millis, At: of.At, Last: of.Last, BodyHash: of.BodyHash}
	switch {
	case of.Outcome == model.Empty, of.Outcome == model.Duplicate:
		return p, nil
	case of.Outcome != model.Delivered:
		p.Code, p.Detail = of.Code, of.Detail
		return p, nil
	}
	place := &bodies.Place{Customer: r.from.Customer, Group: r.from.Group, Scraper: r.from.Scraper,
		Job: r.from.ID, Fetch: of.Fetch, At: of.At, Hash: of.BodyHash, Kept: of.Kept}
	if !place.Has() || !r.Clock.Now().Before(place.Until()) {
		return failed(p, fault.PageBodyGone, ""), nil
	}
	kept := *of.Kept
	kept.From, p.Kept = place.From(), &kept
	return p, place
}

// failed makes p a page that ended with an error. It clones why, which may point into the body's
// reused buffer.
func failed(p *model.Page, code fault.Code, why string) *model.Page {
	p.Outcome, p.Code, p.Detail = model.Errored, string(code), strings.Clone(why)
	return p
}

// extract makes the rows of a page from what is kept of its unit. Further pages that its extraction
// asks for are missing. No language model is asked. The error is ctx's.
func (r *reextracting) extract(ctx context.Context, p *model.Page, entry *bodies.Entry,
	body []byte) error {
	own := extract.Page{URL: entry.Pages[0].URL, ContentType: entry.Pages[0].ContentType,
		Body: body, Asked: p.URL, At: time.UnixMicro(cmp.Or(entry.Pages[0].At, p.At))}
	pages := []extract.Page{own}
	for {
		result, why, err := r.extractOnce(ctx, p, pages)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed(p, extract.CodeOf(err), extract.ReasonOf(err))
			return nil
		case result.Ask != nil && len(pages) < maxUnitPages:
			last := &pages[len(pages)-1]
			if last.Kept = result.Ask.Keep; len(last.Kept) > 0 {
				last.Body = nil
			}
			pages = append(pages, r.answer(entry, result.Ask))
			continue
		case len(result.Rows) > 0:
			p.Outcome, p.Code, p.Rows = model.Delivered, "", result.Rows
			return nil
		}
		switch {
		case result.Rejected > 0:
			failed(p, fault.PageRowRejected, "")
		case p.Unit.Page > 0:
			p.Outcome = model.Empty
		default:
			failed(p, fault.PageNoRows, why)
		}
		return nil
	}
}

// extractOnce calls the extraction once. For a page without rows it returns why there are none.
func (r *reextracting) extractOnce(ctx context.Context, p *model.Page,
	pages []extract.Page) (result extract.Result, why string, err error) {
	newest := pages[len(pages)-1]
	panicked := r.Reader.Run(reading.Page{URL: newest.URL, ContentType: newest.ContentType,
		Body: newest.Body}, func() {
		result, err = r.extractor.ExtractContext(ctx, pages...)
		if err != nil || result.Ask != nil {
			return
		}
		day := r.rates
		day.At = pages[0].At
		result.Rows, err = r.rules.ApplyAll(ctx, result.Rows, day, extract.MaxPageBytes)
		if err == nil && len(result.Rows)+result.Rejected == 0 && p.Unit.Page == 0 &&
			len(pages) == 1 {
			n := len(p.Tries)
			why = r.extractor.Explain(ctx, newest, n > 0 && p.Tries[n-1].Tier.Renders())
		}
	})
	if panicked != nil {
		return extract.Result{}, "", panicked
	}
	return result, why, err
}

// answer returns what is kept of a page that an extraction asks for.
func (r *reextracting) answer(entry *bodies.Entry, ask *extract.Ask) extract.Page {
	if ask.Prompt != nil {
		return extract.Page{ContentType: "application/json", Code: fault.PageNoRows,
			At: r.Clock.Now()}
	}
	page := extract.Page{URL: ask.URL, Asked: ask.URL, Code: fault.PageBodyGone,
		At: r.Clock.Now()}
	asked, err := address.Canonical(ask.URL)
	if err != nil {
		page.Code = fault.PageInvalidURL
		return page
	}
	for _, kept := range entry.Pages[1:] {
		if kept.Asked != asked {
			continue
		}
		if body, err := r.codec.Body(kept); err == nil {
			page.URL, page.Asked, page.ContentType = kept.URL, asked, kept.ContentType
			page.Body, page.Code = body, ""
			if kept.At != 0 {
				page.At = time.UnixMicro(kept.At)
			}
		}
	}
	return page
}
