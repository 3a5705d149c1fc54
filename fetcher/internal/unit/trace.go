package unit

import (
	"time"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/model"
)

// trace makes the span of a page of a traced run, from its first request to its end, including
// waits. The page carries the span on.
func (c *Chain) trace(p *model.Page) {
	end := time.UnixMicro(p.At)
	span := c.units.config.Tracer.Start(c.task.Trace, "fetch.page",
		end.Add(-time.Duration(p.Millis)*time.Millisecond))
	p.Trace = span.Context(c.task.Trace)
	if span == nil {
		return
	}
	span.Text("job", p.Job.String())
	span.Int("seq", int(p.Unit.Seq))
	span.Int("page", int(p.Unit.Page))
	span.Text("host", address.AuthorityOf(p.URL))
	span.Text("outcome", p.Outcome.String())
	span.Int("tries", len(p.Tries))
	span.Int("status", int(p.Status))
	span.Int("bytes", int(p.Bytes))
	if n := len(p.Tries); n > 0 {
		span.Text("tier", p.Tries[n-1].Tier.String())
	}
	span.End(end, p.Code)
}
