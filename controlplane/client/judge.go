package client

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"
	"unicode"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of a judgement.
const (
	// judgedBack is how many earlier runs of a scraper are looked at. Most of them may be failed,
	// stopped or held back, and none of these is compared with.
	judgedBack = 2_000
	// judgedPages is how many pages may be read of more runs than the comparison needs.
	judgedPages = 200_000
	// toldOddities is how many oddities are described.
	toldOddities = 5
	// JudgedWithin is how long a judgement may take; those of other runs may wait for it.
	JudgedWithin = time.Minute
	// summedRows and summedBytes are read at a time where records have no sums.
	summedRows  = 1_000
	summedBytes = 1 << 20
)

// Judging judges runs once they are sealed.
type Judging struct {
	Store interface {
		Recorded
		Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error)
	}
	History *History
	Within  time.Duration
	Logger  *slog.Logger
}

// Recorded is what sums are read from.
type Recorded interface {
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
}

// JudgeInTime judges a sealed run. One that takes longer than Within is not held back: the verdict
// says that it is not judged, and a warning is logged.
func (l Judging) JudgeInTime(ctx context.Context, view *View, job *Job) (Verdict, error) {
	judged, cancel := context.WithTimeout(ctx, l.Within)
	defer cancel()
	why, err := l.judge(judged, view, job)
	if err != nil && judged.Err() != nil && ctx.Err() == nil {
		l.Logger.Warn("a run took too long to be judged, and is not held back", "job", job.ID,
			"pages", job.Pages, "within", l.Within)
		return Verdict{Unjudged: "it was not compared with earlier runs: that took too long"}, nil
	}
	return Verdict{Odd: why}, err
}

// judge returns why a run is to be held back; "": it is not. It compares the run with earlier runs
// of its scraper that completed and are not held back. It never compares with reruns or runs of
// kept bodies.
func (l Judging) judge(ctx context.Context, view *View, job *Job) (string, error) {
	if !IsJudged(view, job) {
		return "", nil
	}
	jobs, seen := []*Job{}, 0
	err := l.History.ScraperRuns(ctx, view, job.Scraper, func(j *Job) bool {
		if !Newer(job, j) {
			return true
		}
		if seen++; isComparable(view, j) {
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
	run, err := l.sumsOf(ctx, job)
	if err != nil {
		return "", err
	}
	var before []*profile.Sums
	pages := uint64(0)
	for _, j := range jobs {
		if pages += j.Pages; pages > judgedPages && len(before) >= profile.FewestBefore {
			break
		}
		sums, err := l.sumsOf(ctx, j)
		if err != nil {
			return "", err
		}
		if sums.Rows == j.Items { // all of its rows are stored
			before = append(before, sums)
		}
	}
	return inWords(profile.Judge(run, before)), nil
}

// isComparable says whether later runs are compared with an earlier one, whose rows may be gone.
func isComparable(view *View, job *Job) bool {
	return job.Closed && IsWhole(view, job) && view.HeldRun(job.ID) == nil &&
		job.Started*1000 >= RowsSince(view)
}

// IsWhole says whether an ended run has read all that its scraper reads, as far as is known.
func IsWhole(view *View, job *Job) bool {
	scraper := view.Scraper(job.Scraper)
	return job.State == model.Completed && !job.Rest &&
		!(scraper != nil && scraper.ListRun && view.MayBeRest(job))
}

// IsJudged says whether a run is judged at its end. Reruns are not: they read what other runs left,
// so any number and kind of pages may be sound. Runs of kept bodies are, if the run that fetched
// them was whole.
func IsJudged(view *View, job *Job) bool {
	group := view.Group(job.Group)
	return group != nil && group.Quarantine && !job.State.Final() && !job.Trial() &&
		(!job.Rest || job.File)
}

// sumsOf returns the sums of a run: those of its pages, or of its rows if a page has none.
func (l Judging) sumsOf(ctx context.Context, job *Job) (*profile.Sums, error) {
	sums, err := StoredSums(ctx, l.Store, job.ID)
	if err != nil || sums != nil {
		return sums, err
	}
	sums = &profile.Sums{}
	q := rowstore.ScanQuery{Scope: rowstore.Scope{Group: job.Group, Scraper: job.Scraper,
		Jobs: []ids.ID{job.ID}}, Upto: math.MaxInt64, Limit: summedRows, Bytes: summedBytes}
	for q.After < q.Upto {
		rows, last, err := l.Store.Scan(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("rows of run %s: %w", job.ID, err)
		}
		for _, row := range rows {
			sums.Add(row)
		}
		q.After = last
	}
	return sums, nil
}

// StoredSums returns the merged sums of a run's pages. nil: a page has none, because it has too
// many fields or an older version stored it.
func StoredSums(ctx context.Context, store Recorded, job ids.ID) (*profile.Sums, error) {
	sums, whole := &profile.Sums{}, true
	err := store.EachRecord(ctx, job, func(r rowstore.Record) error {
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
