package unit

import (
	"bytes"
	"context"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules"
)

// A unit may need more pages than its own (extract.Ask). Each is fetched by a request of its own,
// with turn, robots.txt, guard and lease check. Pages read before wait in memory. It remains one
// unit with one page record and one receipt. A new attempt begins with its first page.

// maxPagesOfUnit bounds the pages that an extraction may read, including the unit's own.
const maxPagesOfUnit = 10

// extractPages runs the extraction of a unit's pages; p is the newest. It returns the zero Step if
// the process ends meanwhile.
func (t *Turn) extractPages(ctx context.Context, p extract.Page) Step {
	// The bank may have to be asked for rates, which must not delay other extractions. All pages of
	// the unit convert by the same day.
	own := p
	if len(t.fetch.pages) > 0 {
		own = t.fetch.pages[0]
	}
	day := t.recipe.rules.DayOf(ctx, t.units.config.Rates, own.At)
	for {
		if !t.units.extracting.Enter(ctx, t.task.Customer, &t.place) {
			return Step{}
		}
		result, err := t.extracted(&t.place, p, day)
		t.place.Leave()
		if ctx.Err() != nil {
			return Step{}
		}
		if err == nil && len(t.fetch.pages)+1 >= maxPagesOfUnit {
			result.Ask = nil
		}
		if err != nil {
			t.fetch.why = extract.ReasonOf(err)
			return t.fail(extract.CodeOf(err))
		}
		if result.Ask == nil || result.Ask.URL == "" && result.Ask.Prompt == nil {
			return t.deliver(p, result)
		}
		t.keepPage(p, result.Ask.Keep)
		if t.fetch.prompt = result.Ask.Prompt; t.fetch.prompt != nil {
			var next *Step
			if p, next = t.askModel(ctx); next != nil {
				return *next
			}
			continue
		}
		code := t.askFor(result.Ask.URL)
		if code == "" {
			return Step{Again: true}
		}
		p = extract.Page{URL: result.Ask.URL, Asked: result.Ask.URL, At: t.units.config.Clock.Now(),
			Code: code}
	}
}

// extracted returns the rows of a unit's pages; p is the newest.
func (t *Turn) extracted(ctx context.Context, p extract.Page, day rules.Day) (result extract.Result,
	err error) {
	panicked := t.units.config.Reader.Run(reading.Page{URL: p.URL, ContentType: p.ContentType,
		Body: p.Body},
		func() {
			t.units.config.Reading(p)
			result, err = t.recipe.extractor.ExtractContext(ctx, append(t.fetch.pages, p)...)
			if err == nil && result.Ask == nil {
				result.Rows, err = t.recipe.rules.ApplyAll(ctx, result.Rows, day,
					extract.MaxPageBytes)
			}
			if err == nil && result.Ask == nil && len(result.Rows)+result.Rejected == 0 &&
				t.unit.Page == 0 && len(t.fetch.pages) == 0 {
				t.fetch.why = t.recipe.extractor.Explain(ctx, p, t.fetch.by.Renders())
			}
		})
	if panicked != nil {
		return extract.Result{}, panicked
	}
	return result, err
}

// keepPage keeps a page, or the part its type chose, until the unit's next page is read.
func (t *Turn) keepPage(p extract.Page, kept []byte) {
	if p.Kept = kept; len(kept) > 0 {
		p.Body = nil
	}
	p.Body = bytes.Clone(p.Body) // the response's buffer is reused
	t.fetch.pages = append(t.fetch.pages, p)
	t.lease.KeepBytes(int64(len(p.Body) + len(p.Kept)))
}

// askFor makes the chain's next request fetch another page of its unit, or returns why not.
func (t *Turn) askFor(url string) fault.Code {
	canonical, err := address.Canonical(url)
	if err != nil {
		return fault.PageInvalidURL
	}
	if !t.mayTry(0) {
		return fault.PageTimeout
	}
	s := &t.fetch
	s.at, s.as, s.asked, s.hops, s.permit, s.spent, s.failures = canonical, nil, canonical, 0,
		false, 0, 0
	return "" // by the tier that brought the unit's own page
}

// unfetched returns the Step of a unit that needs no fetch, nil for all others.
func (t *Turn) unfetched() *Step {
	if len(t.fetch.tries) > 0 || t.fetch.hops > 0 || len(t.fetch.pages) > 0 {
		return nil
	}
	p := extract.Page{URL: t.fetch.at, Asked: t.url, At: t.units.config.Clock.Now()}
	if t.task.Limited {
		p.Code = fault.PageDailyLimit
	}
	var result extract.Result
	var done bool
	var err error
	panicked := t.units.config.Reader.Run(reading.Page{URL: p.URL},
		func() { result, done, err = t.recipe.extractor.Unfetched(p) })
	if panicked != nil {
		err = panicked
	}
	var next Step
	switch {
	case err != nil:
		next = t.fail(extract.CodeOf(err))
	case done:
		next = t.deliver(p, result)
	case t.task.Limited:
		next = t.fail(fault.PageDailyLimit)
	default:
		return nil
	}
	next.Answer = frontier.Answer{Unasked: true}
	return &next
}

// unread ends a page that cannot be fetched: with an error, unless the extraction accepts failures.
func (t *Turn) unread(ctx context.Context, code fault.Code, answer frontier.Answer) Step {
	s := &t.fetch
	if s.asked == "" && !t.recipe.extractor.TakesFailures() {
		next := t.refuse(code)
		next.Answer = answer
		return next
	}
	asked := s.asked
	if asked == "" {
		asked = t.url
	}
	t.lease.BeginReading(0, answer) // the unit's other pages are read
	defer t.lease.EndReading(0)
	next := t.extractPages(ctx,
		extract.Page{URL: s.at, Asked: asked, At: t.units.config.Clock.Now(), Code: code,
			Missing: t.isMissing(code)})
	next.Answer = answer
	return next
}

// questionWait is how long a page waits while the model is busy.
const questionWait = 250 * time.Millisecond

// askModel asks the model the chain's prompt, under the lease of a request. The answer, or its
// error code, is the unit's next page. Codes: model_limit_reached; no_rows without a model;
// model_unavailable, also when the unit's time is over. It returns a Step instead if the model is
// busy, so that the chain retries, or if the lease has lapsed.
func (t *Turn) askModel(ctx context.Context) (extract.Page, *Step) {
	answer := extract.Page{URL: t.fetch.at, ContentType: "application/json"}
	now := t.units.config.Clock.Now()
	switch {
	case t.units.config.Model == nil: // retries would not help
		answer.Code = fault.PageNoRows
		return t.answered(answer), nil
	case t.isOverdue(now):
		answer.Code = fault.PageModel
		return t.answered(answer), nil
	}
	if !t.units.asking.Enter(t.task.Customer, now) {
		return extract.Page{}, &Step{Again: true, Wait: questionWait}
	}
	defer func() { t.units.asking.Leave(t.task.Customer, t.units.config.Clock.Now()) }()
	if !t.lease.IsFresh() {
		return extract.Page{}, &Step{}
	}
	try, cancel := context.WithTimeout(ctx, t.timeout(now))
	defer cancel()
	prompt := t.fetch.prompt
	body, err := t.units.config.Model.Ask(try, t.task.Customer, prompt.System, prompt.User,
		prompt.Schema)
	if ctx.Err() != nil {
		return extract.Page{}, &Step{}
	}
	outcome := fault.Code("")
	if answer.Body = body; err != nil {
		// a timeout of the model is not the page's timeout
		outcome, answer.Code = fault.CodeOf(err), fault.PageModel
		switch outcome {
		case fault.PageModelLimit:
			answer.Code = outcome
		case fault.PageTimeout:
		default: // errors without a code
			outcome = fault.PageModel
		}
		t.units.config.Logger.Warn("fetcher: the model gave no answer", "code", outcome, "error",
			err)
	}
	t.units.metrics.questions[outcome].Inc()
	return t.answered(answer), nil
}

// answered removes the chain's prompt and returns its answer.
func (t *Turn) answered(p extract.Page) extract.Page {
	t.fetch.prompt = nil
	p.At = t.units.config.Clock.Now()
	return p
}

// askModelAgain resumes a chain whose prompt had to wait. No request goes to its host.
func (t *Turn) askModelAgain(ctx context.Context) Step {
	p, next := t.askModel(ctx)
	if next == nil {
		extracted := t.extractPages(ctx, p)
		next = &extracted
	}
	next.Answer.Unasked = true
	return *next
}
