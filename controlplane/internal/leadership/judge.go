package leadership

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of a judgement.
const (
	// judgedBack is how many earlier runs of a scraper are considered for comparison.
	judgedBack = 200
	// judgedPages is how many pages may be read of more runs than the comparison needs.
	judgedPages = 200_000
	// toldOddities is how many oddities are described.
	toldOddities = 5
	// judgedWithin is how long a judgement may take; those of other runs may wait for it.
	judgedWithin = time.Minute
)

// judging judges runs once they are sealed.
type judging struct {
	view  func() *state.View
	store interface {
		EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
		PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord, error)
	}
	within time.Duration
	logger *slog.Logger
}

// judgeInTime is judge with a time limit. A run that takes longer is not held back, and a warning
// is logged.
func (l judging) judgeInTime(ctx context.Context, job *state.Job) (string, error) {
	judged, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	why, err := l.judge(judged, job)
	if err != nil && judged.Err() != nil && ctx.Err() == nil {
		l.logger.Warn("a run took too long to be judged, and is not held back", "job", job.ID,
			"pages", job.Pages, "within", l.within)
		return "", nil
	}
	return why, err
}

// judge returns why a sealed run is to be held back; "": it is not. It compares the run with
// earlier runs of its scraper that completed and are not held back. It never compares with reruns
// or runs of kept bodies.
func (l judging) judge(ctx context.Context, job *state.Job) (string, error) {
	view := l.view()
	if !isJudged(view, job) {
		return "", nil
	}
	jobs, seen := []*state.Job{}, 0
	history := client.NewHistory(pastRuns{of: l})
	err := history.ScraperRuns(ctx, view, job.Scraper, func(j *state.Job) bool {
		if !client.Newer(job, j) {
			return true
		}
		if seen++; j.Closed && j.State == model.Completed && !j.Rest &&
			view.HeldRun(j.ID) == nil {
			jobs = append(jobs, j)
		}
		return seen < judgedBack && len(jobs) < profile.MostBefore
	})
	if err != nil {
		return "", fmt.Errorf("runs before %s: %w", job.ID, err)
	}
	if len(jobs) < profile.FewestBefore {
		return "", nil // too few runs to compare with
	}
	run, err := l.sumsOf(ctx, job.ID)
	if err != nil || run == nil {
		return "", err
	}
	var before []*profile.Sums
	pages := uint64(0)
	for _, j := range jobs {
		if pages += j.Pages; pages > judgedPages && len(before) >= profile.FewestBefore {
			break
		}
		sums, err := l.sumsOf(ctx, j.ID)
		if err != nil {
			return "", err
		}
		if sums != nil && sums.Rows == j.Items { // all of its records are stored
			before = append(before, sums)
		}
	}
	return inWords(profile.Judge(run, before)), nil
}

// isJudged says whether a run is judged at its end. Reruns are not: they read what other runs left,
// so any number and kind of pages may be sound.
func isJudged(view *state.View, job *state.Job) bool {
	group := view.Group(job.Group)
	return group != nil && group.Quarantine && !job.State.Final() && !job.Trial() &&
		(!job.Rest || job.File)
}

// pastRuns serves the history with the runs that have left the state.
type pastRuns struct {
	client.Past
	of judging
}

// PastRuns implements client.Past.
func (p pastRuns) PastRuns(ctx context.Context, q rowstore.PastQuery) ([]rowstore.PastRecord,
	error) {
	return p.of.store.PastRuns(ctx, q)
}

// sumsOf returns the merged sums of a run's pages; nil: some have none, because an older version
// stored them.
func (l judging) sumsOf(ctx context.Context, job ids.ID) (*profile.Sums, error) {
	sums, whole := &profile.Sums{}, true
	err := l.store.EachRecord(ctx, job, func(r rowstore.Record) error {
		if !whole || r.Outcome != model.Delivered || r.Items == 0 {
			return nil
		}
		of, err := profile.Decode(r.Sums)
		if whole = err == nil && of.Rows == uint64(r.Items); whole {
			sums.Merge(of)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sums of run %s: %w", job, err)
	}
	if !whole {
		return nil, nil
	}
	return sums, nil
}

// inWords describes oddities.
func inWords(odd []profile.Oddity) string {
	var texts []string
	for _, o := range odd[:min(len(odd), toldOddities)] {
		text := o.Text
		if o.Field != "" {
			text = fmt.Sprintf("%s: %s", fieldName(o.Field), text)
		}
		texts = append(texts, text)
	}
	if more := len(odd) - toldOddities; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// fieldName returns a field's name in a form fit for a sentence: 40 visible characters at most. A
// page may have chosen it, with characters that hide or reorder others.
func fieldName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(name, ""))
	if runes := []rune(clean); len(runes) > 40 {
		clean = string(runes[:40])
	}
	return clean
}
