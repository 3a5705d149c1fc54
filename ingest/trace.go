package ingest

import "time"

// trace makes the spans of a stored batch's traced pages, each as long as the store had the batch.
// Their receipts carry the trace on.
func (g *Ingest) trace(b *batch, began time.Time) {
	for _, i := range b.written {
		page, receipt := b.items[i].page, b.items[i].receipt
		if page.Trace == nil {
			continue
		}
		span := g.config.Tracer.Start(page.Trace, "ingest.store", began)
		span.Text("job", page.Job.String())
		span.Int("seq", int(page.Unit.Seq))
		span.Int("page", int(page.Unit.Page))
		span.Int("batch", len(b.writes))
		problem := ""
		if receipt == nil {
			problem = "dropped: the run is closed"
		} else {
			span.Int("rows", int(receipt.Items))
			receipt.Trace = span.Context(page.Trace)
		}
		span.End(g.config.Clock.Now(), problem)
	}
}
