package ingest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
)

// maxUnitPages bounds the pages of a unit, as fetchers do.
const maxUnitPages = 10

// readPages makes the pages of records, several at a time: nil for one that is stored. It begins no
// further one once their rows are many bytes, and returns those that it has made.
func (r *reextracting) readPages(ctx context.Context, records []rowstore.Record,
	stored map[model.Unit]*model.Receipt) ([]*model.Page, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pages := make([]*model.Page, len(records))
	var next, bytes atomic.Int64
	var workers sync.WaitGroup
	for range min(r.Readers, len(records)) {
		workers.Go(func() {
			for ctx.Err() == nil && bytes.Load() < readBytes {
				i := int(next.Add(1)) - 1
				if i >= len(records) {
					return
				}
				if stored[records[i].Unit] != nil {
					continue
				}
				page, err := r.page(ctx, &records[i])
				if err != nil {
					cancel(err)
					return
				}
				pages[i] = page
				for _, row := range page.Rows {
					bytes.Add(int64(len(row)))
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return pages[:min(int(next.Load()), len(pages))], nil
}

// page is what a record comes to. What brought no rows stays what it was: it was not paid for.
func (r *reextracting) page(ctx context.Context, of *rowstore.Record) (*model.Page, error) {
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
	place := bodies.Place{Customer: r.from.Customer, Group: r.from.Group, Scraper: r.from.Scraper,
		Job: r.from.ID, Fetch: of.Fetch, At: of.At, Hash: of.BodyHash, Kept: of.Kept}
	if of.Kept == nil || !r.Clock.Now().Before(place.Until()) {
		return failed(p, fault.PageBodyGone, ""), nil
	}
	entry, body, err := r.codec.Read(ctx, r.Bodies, &place)
	if errors.Is(err, bodies.ErrGone) {
		return failed(p, fault.PageBodyGone, ""), nil
	}
	if err != nil {
		return nil, err
	}
	kept := *of.Kept
	kept.From, p.Kept = place.From(), &kept
	return p, r.extract(ctx, p, &entry, body)
}

// failed makes a page one that ended with an error.
func failed(p *model.Page, code fault.Code, why string) *model.Page {
	p.Outcome, p.Code, p.Detail = model.Errored, string(code), why
	return p
}

// extract makes the rows of a page of what is kept of its unit. What its extraction asks for beyond
// that is not there. No language model is asked. Its error is ctx's.
func (r *reextracting) extract(ctx context.Context, p *model.Page, entry *bodies.Entry,
	body []byte) error {
	own := extract.Page{URL: entry.Pages[0].URL, ContentType: entry.Pages[0].ContentType,
		Body: body, Asked: p.URL, At: time.UnixMicro(p.At)}
	pages := []extract.Page{own}
	for {
		result, why, err := r.extractOnce(ctx, p, pages)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed(p, pageCode(err), detailOf(err))
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

// extractOnce is one call of the extraction, and, of a page without a row, why it has none.
func (r *reextracting) extractOnce(ctx context.Context, p *model.Page,
	pages []extract.Page) (result extract.Result, why string, err error) {
	newest := pages[len(pages)-1]
	panicked := r.Reader.Run(reading.Page{URL: newest.URL, ContentType: newest.ContentType,
		Body: newest.Body}, func() {
		result, err = r.extractor.ExtractContext(ctx, pages...)
		if err != nil || result.Ask != nil {
			return
		}
		result.Rows, err = r.rules.ApplyAll(ctx, result.Rows, r.day, extract.MaxPageBytes)
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

// answer is what is kept of a page that an extraction asks for.
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
		}
	}
	return page
}

// pageCode is the code that a page's error carries for what went wrong with its extraction.
func pageCode(err error) fault.Code {
	if code := fault.CodeOf(err); fault.Lookup(code).Status == 0 {
		return code
	}
	return fault.PageUnparsable
}

// detailOf is what a coded error says to the customer; "" for others.
func detailOf(err error) string {
	var coded *fault.Error
	if !errors.As(err, &coded) {
		return ""
	}
	return extract.CutReason(coded.Detail)
}
