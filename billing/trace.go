package billing

import (
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// traced is a receipt of a traced run. Its span stays here, since a command does not need it.
type traced struct {
	job   ids.ID
	unit  model.Unit
	trace telemetry.SpanContext
}

// detach moves a receipt's span to the batch.
func (full *batch) detach(receipt *model.Receipt) {
	if receipt.Trace != nil {
		full.traced = append(full.traced,
			traced{job: receipt.Job, unit: receipt.Unit, trace: receipt.Trace})
		receipt.Trace = nil
	}
}

// trace makes a span for each traced receipt of a settled batch, as long as the batch took.
func (b *Billing) trace(full *batch, began time.Time) {
	for _, t := range full.traced {
		span := b.config.Tracer.Start(t.trace, "billing.settle", began)
		span.Text("job", t.job.String())
		span.Int("seq", int(t.unit.Seq))
		span.Int("page", int(t.unit.Page))
		span.Int("batch", len(full.receipts))
		span.End(b.config.Clock.Now(), "")
	}
}
