package ingest

import (
	"context"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

// fetchMost bounds how far a batch of large pages overshoots its byte bound.
const fetchMost = 128

// batch is a set of messages that go through the steps together.
type batch struct {
	messages []stream.Message // without their values
	items    []item           // decodable messages, in their order
	bytes    int

	writes  []rowstore.PageWrite
	written []int        // place in items of each write
	sums    profile.Sums // of the page being completed
}

// item is a message's record on its way from page to receipt. A dropped one has neither page,
// marker nor receipt.
type item struct {
	partition int
	page      *model.Page
	marker    *model.Marker
	receipt   *model.Receipt
}

// add takes in messages and counts those that cannot be decoded.
func (b *batch) add(messages []stream.Message, reader *reading.Guard) (undecodable uint64) {
	for _, m := range messages {
		b.bytes += len(m.Value)
		var page *model.Page
		var marker *model.Marker
		var err error
		panicked := reader.Run(reading.Page{URL: "a record of pages", Body: m.Value}, func() {
			page, marker, err = stream.DecodePages(m.Value)
			if err == nil && page != nil && !wellFormed(page) {
				err = stream.ErrUndecodable
			}
		})
		if err == nil && panicked == nil {
			b.items = append(b.items, item{partition: m.Partition, page: page, marker: marker})
		} else {
			undecodable++
		}
		m.Value = nil // the value is not ours after the next Fetch
		b.messages = append(b.messages, m)
	}
	return undecodable
}

// wellFormed rejects pages from which no row can be completed, or which no row store accepts. For
// one such page a store would refuse the whole batch.
func wellFormed(p *model.Page) bool {
	if (rowstore.PageWrite{Page: p}).Check() != nil {
		return false
	}
	noObject := func(row []byte) bool {
		return len(row) < 2 || row[0] != '{' ||
			row[len(row)-1] != '}'
	}
	return p.Outcome >= model.Delivered && p.Outcome <= model.Cancelled &&
		!slices.ContainsFunc(p.Rows, noObject)
}

// admit decides what is stored: pages of known runs that are not closed. A cancelled page becomes
// its receipt at once, since it has no record. Only the control plane's newest state may declare a
// run unknown. On an error the batch is unchanged.
func (g *Ingest) admit(ctx context.Context, b *batch) error {
	view := g.config.Control.View()
	for i := range b.items {
		if page := b.items[i].page; page != nil && view.Job(page.Job) == nil {
			g.metrics.fresh.Inc()
			fresh, err := g.config.Control.Fresh(ctx)
			if err != nil {
				return fmt.Errorf("fresh view: %w", err)
			}
			view = fresh
			break
		}
	}
	stamps := map[ids.ID]rowstore.Job{}
	for i := range b.items {
		it := &b.items[i]
		if it.page == nil {
			continue
		}
		job := view.Job(it.page.Job)
		if job == nil || job.Closed {
			it.page = nil
			g.counts.dropped.Add(1)
			continue
		}
		if it.page.Unit.Seq >= job.Links {
			it.page = nil
			g.skip(1)
			continue
		}
		if it.page.Outcome == model.Cancelled {
			it.receipt = &model.Receipt{Job: it.page.Job, Unit: it.page.Unit,
				Outcome: model.Cancelled}
			continue
		}
		stamp, ok := stamps[job.ID]
		if !ok {
			stamp = rowstore.Job{ID: job.ID, Customer: job.Customer, Group: job.Group,
				Scraper: job.Scraper,
				Started: job.Started * 1000}
			stamps[job.ID] = stamp
		}
		it.page = g.complete(it.page, stamp, &b.sums)
		b.writes = append(b.writes, rowstore.PageWrite{Job: stamp, Page: it.page})
		b.written = append(b.written, i)
	}
	return nil
}

// store makes the batch's pages durable in one transaction and keeps their receipts.
func (g *Ingest) store(ctx context.Context, b *batch) error {
	if len(b.writes) == 0 {
		return nil
	}
	receipts, err := g.put(ctx, b.writes)
	if err != nil {
		return err
	}
	if len(receipts) != len(b.writes) {
		return fmt.Errorf("%d receipts for %d pages", len(receipts), len(b.writes))
	}
	for n, receipt := range receipts {
		b.items[b.written[n]].receipt = receipt
		if receipt == nil {
			g.counts.dropped.Add(1)
			continue
		}
		g.counts.stored.Add(1)
		g.counts.rows.Add(uint64(receipt.Items))
	}
	return nil
}

// outgoing returns the receipts and markers to publish, by partition, in the order of the messages.
func (b *batch) outgoing() map[int][][]byte {
	out := map[int][][]byte{}
	for i := range b.items {
		switch it := &b.items[i]; {
		case it.marker != nil:
			out[it.partition] = append(out[it.partition], stream.EncodeMarker(*it.marker))
		case it.receipt != nil:
			out[it.partition] = append(out[it.partition], stream.EncodeReceipt(*it.receipt))
		}
	}
	return out
}
