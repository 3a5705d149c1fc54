package fetcher

import (
	"context"
	"encoding/json"
	"time"

	"shoal.dev/shoal/fetcher/internal/llm"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/telemetry"
)

// Model is a language model. Ask gives an answer's JSON; its errors have page codes.
type Model interface {
	Ask(ctx context.Context, system, user string, schema json.RawMessage) ([]byte, error)
}

// ModelConfig says which language model to ask, and how much. ModelKey is its key, which no log
// shows.
type (
	ModelConfig = llm.Config
	ModelKey    = llm.Secret
)

// NewModel makes a model that is asked over an egress client of its own: the endpoint is the
// operator's, who may allow a private range for it that pages never reach.
func NewModel(config ModelConfig, out *egress.Client, c clock.Clock, to *telemetry.Metrics) (Model,
	error) {
	client, err := llm.New(config, out, c)
	if err != nil {
		return nil, err
	}
	telemetry.NewSamples(func() (*llm.Client, bool) { return client, true }).
		Gauge("shoal_fetcher_model_tokens", "Tokens that the language model took on the day it "+
			"was asked last, UTC.",
			func(c *llm.Client) float64 { tokens, _ := c.Spent(); return float64(tokens) }).
		Gauge("shoal_fetcher_model_micros", "Micros, millionths of a euro, that they cost, "+
			"where prices are known.",
			func(c *llm.Client) float64 { _, micros := c.Spent(); return float64(micros) }).
		Declare(to)
	return client, nil
}

// questionWait is how long a page waits when the model is asked as much as it may be.
const questionWait = 250 * time.Millisecond

// question puts the chain's prompt to the model, under the lease of a request. The answer, or why
// there is none (model_unavailable, also when the unit's time is over; model_limit_reached; no_rows
// without a model), is the unit's next page. A step instead: the model has no place free, and the
// chain comes again; or the lease has lapsed.
func (f *Fetcher) question(ctx context.Context, c *chain) (extract.Page, *step) {
	answer := extract.Page{URL: c.fetch.at, ContentType: "application/json"}
	now := f.config.Clock.Now()
	switch {
	case f.config.Model == nil: // nothing that could answer another time
		answer.Code = fault.PageNoRows
		return c.answered(f, answer), nil
	case c.overdue(now):
		answer.Code = fault.PageModel
		return c.answered(f, answer), nil
	}
	select {
	case f.asking <- struct{}{}:
		defer func() { <-f.asking }()
	default:
		return extract.Page{}, &step{again: true, wait: questionWait}
	}
	if !f.isFresh(c.shard) {
		return extract.Page{}, &step{}
	}
	try, cancel := context.WithTimeout(ctx, f.timeout(c, now))
	defer cancel()
	prompt := c.fetch.prompt
	body, err := f.config.Model.Ask(try, prompt.System, prompt.User, prompt.Schema)
	if ctx.Err() != nil {
		return extract.Page{}, &step{}
	}
	outcome := fault.Code("")
	if answer.Body = body; err != nil {
		// its time running out is not the page's
		outcome, answer.Code = fault.CodeOf(err), fault.PageModel
		switch outcome {
		case fault.PageModelLimit:
			answer.Code = outcome
		case fault.PageTimeout:
		default: // none of its own
			outcome = fault.PageModel
		}
		f.config.Logger.Warn("fetcher: the model gave no answer", "code", outcome, "error", err)
	}
	f.metrics.questions[outcome].Inc()
	return c.answered(f, answer), nil
}

// answered notes that the chain's prompt is done with.
func (c *chain) answered(f *Fetcher, p extract.Page) extract.Page {
	c.fetch.prompt = nil
	p.At = f.config.Clock.Now()
	return p
}

// questionAgain goes on with a chain whose prompt had to wait. Its host is not asked anything.
func (f *Fetcher) questionAgain(ctx context.Context, c *chain, r *recipe, view View) step {
	p, next := f.question(ctx, c)
	if next == nil {
		extracted := f.extraction(ctx, c, r, view, p)
		next = &extracted
	}
	next.answer.Unasked = true
	return *next
}
