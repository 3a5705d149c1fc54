package ingest

import (
	"context"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

// complete completes a page's rows and sums them up. A page that causes a panic is stored as
// unparsable.
func (g *Ingest) complete(p *model.Page, job rowstore.Job,
	sums *profile.Sums) *model.Page {
	panicked := g.config.Reader.Run(evidence(p), func() {
		g.config.Reading(p)
		sumRows(p, sums)
		completeRows(p, job)
	})
	if panicked != nil {
		return unparsable(p)
	}
	return p
}

// put stores pages. If the store panics, put finds the page at fault by bisection and stores it as
// unparsable. The store has undone what it began, and the other pages must not wait. If the store
// refuses even that, the page is dropped, and markers find its unit.
func (g *Ingest) put(ctx context.Context, writes []rowstore.PageWrite) (receipts []*model.Receipt,
	err error) {
	put := func() { receipts, err = g.config.Store.PutPages(ctx, writes) }
	if len(writes) > 1 {
		if reading.Catch(put) == nil {
			return receipts, err
		}
		half := len(writes) / 2
		first, err := g.put(ctx, writes[:half])
		if err != nil {
			return nil, err
		}
		second, err := g.put(ctx, writes[half:])
		return append(first, second...), err
	}
	if g.config.Reader.Run(evidence(writes[0].Page), put) == nil {
		return receipts, err
	}
	writes[0].Page = unparsable(writes[0].Page)
	if g.config.Reader.Run(evidence(writes[0].Page), put) != nil {
		g.skip(1)
		return []*model.Receipt{nil}, nil
	}
	return receipts, err
}

// unparsable is the substitute for a page that causes a panic: uncharged, without rows, the end of
// its chain.
func unparsable(p *model.Page) *model.Page {
	return &model.Page{Job: p.Job, Unit: p.Unit, Fetch: p.Fetch, Outcome: model.Errored,
		Code:   string(fault.PageUnparsable),
		Status: p.Status, URL: p.URL, Final: p.Final, Tries: p.Tries, Bytes: p.Bytes,
		Millis: p.Millis, At: p.At, Last: true, Trace: p.Trace}
}

// evidence returns the record of a page, which is kept for inspection.
func evidence(p *model.Page) reading.Page {
	return reading.Page{URL: p.URL, ContentType: "application/cbor",
		Record: func() []byte { return stream.EncodePage(*p) }}
}
