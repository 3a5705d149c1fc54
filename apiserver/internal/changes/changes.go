// Package changes tells customers what changed since a scraper's previous run. It is background
// work: an item for each run that counts, in a group with changeAlerts. It reports a run once. The
// command that reports ends the item, so a repeat after a crash has no effect. Package diff
// compares runs; package notices has the words of the notice.
package changes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/internal/diff"
	"shoal.dev/shoal/apiserver/internal/scraped"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/utf8text"
	"shoal.dev/shoal/pkg/work"
)

const (
	// MaxRows is how many rows of each run are compared: five parts of the keys, each a step.
	MaxRows = 1_000_000
	// lookedBack is how many runs of a scraper are looked at, most of which may be failed or held
	// back. extractsBack is how many of them may be runs of kept bodies.
	lookedBack   = 2_000
	extractsBack = 200
	// maxTries is how often in a row a comparison may fail before the customer is told.
	maxTries = 8
	// maxExamples is how many rows are shown, in at most exampleBytes each.
	maxExamples  = 10
	exampleBytes = 200
	// Characters of a name and of a value in an example, and how many members it has.
	nameChars, valueChars, namedMembers = 40, 40, 3
)

// Config is what a Kind needs. Point is optional.
type Config struct {
	Client  client.Client
	Store   rowstore.Reads
	History *client.History
	// Point is called at "changes.after_part", "changes.before_tell" and "changes.after_tell".
	// Tests end the process there.
	Point func(name string)
	// Rows is how many rows of a run are compared at most; 0: MaxRows.
	Rows int64
	// PartRows is how many rows make a part; 0: the default of package diff.
	PartRows int64
}

type teller struct{ Config }

// Kind is the kind of background work that compares runs with previous ones.
func Kind(config Config) work.Kind {
	t := &teller{config}
	if t.Point == nil {
		t.Point = func(string) {}
	}
	if t.Rows == 0 {
		t.Rows = MaxRows
	}
	return work.Kind{Name: work.Changes, Step: t.step, AtOnce: 1, Held: 10, PerCustomer: 5}
}

// progress is how far a comparison has come. If the rows it names have changed, the comparison
// starts over. A default key is not stored, since its name may have any length.
type progress struct {
	From   ids.ID    `json:"from"`
	Rows   [2]int64  `json:"rows"`  // of the older and the newer run
	Asked  []string  `json:"asked"` // the group's key
	On     []string  `json:"on"`
	Part   int       `json:"part"` // the next one
	Sums   diff.Sums `json:"sums"`
	Sample []string  `json:"sample"`
}

// continues says whether the results of an earlier progress are still valid.
func (p *progress) continues(before *progress) bool {
	return p.From == before.From && p.Rows == before.Rows && slices.Equal(p.Asked, before.Asked) &&
		slices.Equal(p.On, before.On)
}

// encode encodes the progress for an item. It does not escape <, which names of fields may be full
// of: one byte instead of six.
func (p *progress) encode() ([]byte, error) {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(p)
	return to.Bytes(), err
}

// comparison is a run and how it is to be compared.
type comparison struct {
	item    work.Item
	job     *client.Job
	older   *client.Job
	scraper *client.Scraper
	alerts  *client.Alerts
}

// step compares one part of the rows. After the last part it reports what changed.
func (t *teller) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	view, err := t.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: changes of a run: %w", err)
	}
	c, err := t.find(ctx, view, item)
	if err != nil || c == nil {
		return work.Done(), err
	}
	outcome, err := t.compare(ctx, view, c)
	var refused *fault.Error
	switch {
	case err == nil:
		return outcome, nil
	case ctx.Err() != nil:
		return work.Outcome{}, err
	case errors.As(err, &refused) && refused.Code == fault.InvalidRequest: // in the key
		return t.tell(ctx, c, client.RunChanges{}, refused.Detail)
	case item.Failures >= maxTries:
		return t.tell(ctx, c, client.RunChanges{}, "its rows could not be read")
	}
	return work.Outcome{}, fmt.Errorf("apiserver: changes of run %s: %w", c.job.ID, err)
}

// find finds what to compare; nil: nothing any more.
func (t *teller) find(ctx context.Context, view *client.View, item work.Item) (*comparison,
	error) {
	var id ids.ID
	if len(item.Args) != len(id) {
		return nil, work.GiveUp(fmt.Errorf("apiserver: changes of a run without its id"))
	}
	copy(id[:], item.Args)
	c := &comparison{item: item}
	var err error
	if c.job, err = t.History.Run(ctx, view, id); err != nil {
		return nil, fmt.Errorf("apiserver: look for run %s: %w", id, err)
	}
	if c.job == nil || !ready(view, c.job) {
		return nil, nil
	}
	if c.scraper = view.Scraper(c.job.Scraper); c.scraper == nil {
		return nil, nil
	}
	group := view.Group(c.scraper.Group)
	if group == nil || group.Alerts == nil || client.Retained(view, c.scraper) == 1 {
		return nil, nil // with one run retained, the previous rows are always gone
	}
	c.alerts = group.Alerts
	if err := t.findOlder(ctx, view, c); err != nil || c.older == nil {
		return nil, err
	}
	return c, nil
}

// findOlder finds what a run is compared with: the newest ready run before it. An extract of kept
// bodies stands for the run whose pages it reads. It only counts if that is the newest run. Rows of
// an older run or a rerun would not show what changed.
func (t *teller) findOlder(ctx context.Context, view *client.View, c *comparison) error {
	var newest *client.Job
	var extracts []*client.Job
	seen := 0
	err := t.History.ScraperRuns(ctx, view, c.scraper.ID, func(j *client.Job) bool {
		switch {
		case !client.Newer(c.job, j):
			return true
		case !ready(view, j):
		case isExtract(j):
			extracts = append(extracts, j)
		default:
			newest = j
			return false
		}
		seen++
		return seen < lookedBack && len(extracts) < extractsBack
	})
	if err != nil {
		return fmt.Errorf("apiserver: runs before %s: %w", c.job.ID, err)
	}
	if newest == nil {
		return nil
	}
	if isExtract(c.job) {
		if of, err := t.reads(ctx, view, c.job, newest); err != nil || !of {
			return err
		}
	}
	for _, j := range extracts {
		of, err := t.reads(ctx, view, j, newest)
		if err != nil {
			return err
		}
		if of {
			c.older = j
			return nil
		}
	}
	c.older = newest
	return nil
}

// isExtract says whether a run extracts rows from kept bodies.
func isExtract(job *client.Job) bool { return job.File && job.Rest }

// reads says whether an extract has rows of pages that another run kept.
func (t *teller) reads(ctx context.Context, view *client.View, extract, of *client.Job) (bool,
	error) {
	upto, err := t.Store.Horizon(ctx)
	if err != nil {
		return false, fmt.Errorf("apiserver: rows of run %s: %w", extract.ID, err)
	}
	docs, _, err := t.Store.Scan(ctx, rowstore.ScanQuery{Scope: client.ShownOf(view, extract),
		Upto: upto, Limit: 1})
	if err != nil || len(docs) == 0 {
		return false, err
	}
	var row struct {
		ID model.RowID `json:"_rowId"`
	}
	if err := json.Unmarshal(docs[0], &row); err != nil {
		return false, fmt.Errorf("apiserver: a row of run %s: %w", extract.ID, err)
	}
	record, err := t.Store.Record(ctx, extract.ID, row.ID.Unit)
	if err != nil || record == nil || record.Kept == nil || record.Kept.From == nil {
		return false, err
	}
	return record.Kept.From.Job == of.ID, nil
}

// ready says whether a run is complete, counts, and reads all that its scraper reads. A rerun reads
// only what other runs left, so next to it all else would seem gone.
func ready(v *client.View, job *client.Job) bool {
	return job.Closed && job.State == model.Completed && !job.Trial() && client.Counts(v, job) &&
		(isExtract(job) || !job.Rest)
}

// compare compares the next part.
func (t *teller) compare(ctx context.Context, view *client.View, c *comparison) (work.Outcome,
	error) {
	for _, job := range []*client.Job{c.older, c.job} {
		if job.Items > uint64(t.Rows) {
			return t.tell(ctx, c, client.RunChanges{}, t.tooMany(job.Items))
		}
	}
	runs, err := diff.Between(ctx, t.Store, client.ShownOf(view, c.older),
		client.ShownOf(view, c.job))
	if err != nil {
		return work.Outcome{}, err
	}
	switch {
	case runs.Rows == 0 && c.older.Items > 0:
		return t.tell(ctx, c, client.RunChanges{}, "the rows of the run before it are gone")
	case runs.NewerRows == 0 && c.job.Items > 0:
		return t.tell(ctx, c, client.RunChanges{}, "its rows are gone")
	case max(runs.Rows, runs.NewerRows) > t.Rows:
		return t.tell(ctx, c, client.RunChanges{},
			t.tooMany(uint64(max(runs.Rows, runs.NewerRows))))
	}
	at := progress{From: c.older.ID, Rows: [2]int64{runs.Rows, runs.NewerRows},
		Asked: c.alerts.Key, On: c.alerts.On}
	var before progress
	if json.Unmarshal(c.item.Progress, &before) == nil && at.continues(&before) {
		at = before
	}
	runs.PartRows = t.PartRows
	if runs.Key = c.alerts.Key; len(runs.Key) == 0 {
		if runs.Key, err = runs.DefaultKey(ctx); err != nil {
			return work.Outcome{}, err
		}
	}
	if at.Part < runs.Parts() {
		if err := addPart(ctx, runs, &at); err != nil {
			return work.Outcome{}, err
		}
		t.Point("changes.after_part")
	}
	if at.Part < runs.Parts() {
		encoded, err := at.encode()
		if err != nil {
			return work.Outcome{}, fmt.Errorf("encode how far it has come: %w", err)
		}
		return work.GoOn(encoded), nil
	}
	if !at.Sums.Of(kinds(at.On)) {
		return work.Done(), nil
	}
	return t.tell(ctx, c, client.RunChanges{From: at.From, Added: at.Sums.Added,
		Removed: at.Sums.Removed, Changed: at.Sums.Changed, Examples: at.Sample,
		Key: c.alerts.Key}, "")
}

func (t *teller) tooMany(rows uint64) string {
	return fmt.Sprintf("a run has %d rows, and at most %d are compared", rows, t.Rows)
}

func kinds(names []string) (found []diff.Kind) {
	for _, name := range names {
		found = append(found, diff.Kind(name))
	}
	return found
}

// addPart compares a part, and takes examples from it while there is room.
func addPart(ctx context.Context, runs diff.Runs, at *progress) error {
	of := kinds(at.On)
	if len(at.Sample) >= maxExamples {
		of = nil
	}
	sums, err := runs.Part(ctx, at.Part, of, func(c *diff.Change) bool {
		at.Sample = append(at.Sample, example(c, runs.Key))
		return len(at.Sample) < maxExamples
	})
	if err != nil {
		return err
	}
	at.Sums.Add(sums)
	at.Part++
	return nil
}

// tell reports what changed, or why that is unknown, and ends the item.
func (t *teller) tell(ctx context.Context, c *comparison, changes client.RunChanges,
	message string) (work.Outcome, error) {
	t.Point("changes.before_tell")
	_, err := client.Do(ctx, t.Client, client.TellChanges{Customer: c.item.Customer,
		Job: c.job.ID, Scraper: c.scraper.ID, Changes: changes, Message: message}, nil)
	if err != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: tell the changes of run %s: %w", c.job.ID,
			err)
	}
	t.Point("changes.after_tell")
	return work.Done(), nil
}

// example describes a change in a few words, in at most exampleBytes. Texts of pages are cleaned.
func example(c *diff.Change, key []string) string {
	row := c.After
	if row == nil {
		row = c.Before
	}
	var text strings.Builder
	text.WriteString(map[diff.Kind]string{diff.Added: "added", diff.Removed: "removed",
		diff.Changed: "changed"}[c.Kind])
	names := naming(row, key)
	if len(names) == 0 { // it has no member of the key
		names = naming(row, nil)
	}
	for _, m := range names {
		text.WriteString(" " + m)
	}
	if c.Kind == diff.Changed {
		before, after := values(c.Before), values(c.After)
		for i, name := range c.Fields[:min(len(c.Fields), namedMembers)] {
			sign := ", "
			if i == 0 {
				sign = ": "
			}
			fmt.Fprintf(&text, "%s%s %s → %s", sign, short(name, nameChars),
				orNothing(before[name]), orNothing(after[name]))
		}
		if more := len(c.Fields) - namedMembers; more > 0 {
			fmt.Fprintf(&text, ", and %d more", more)
		}
	}
	return utf8text.CutText(text.String(), exampleBytes)
}

// naming are the members by which a row is described: those of the key, or else its first ones.
func naming(row json.RawMessage, key []string) (texts []string) {
	for m := rowstore.MembersOf(row); m.Next() && len(texts) < namedMembers; {
		if len(key) > 0 && !slices.Contains(key, m.Key) ||
			len(key) == 0 && model.IsServerKey(m.Key) || m.Value == "null" {
			continue
		}
		texts = append(texts, short(m.Key, nameChars)+" "+orNothing(m.Value))
	}
	return texts
}

func values(row json.RawMessage) map[string]string {
	found := map[string]string{}
	for m := rowstore.MembersOf(row); m.Next(); {
		found[m.Key] = m.Value
	}
	return found
}

// orNothing is a value for a sentence: a text in quotes, "nothing" if it is absent.
func orNothing(value string) string {
	if value == "" || value == "null" {
		return "nothing"
	}
	if text, ok := rowstore.TextOf(value); ok {
		return `"` + short(text, valueChars) + `"`
	}
	return short(value, valueChars)
}

// short is a text of a page on one line, with at most this many characters.
func short(text string, most int) string {
	text, cut := scraped.Clean(text, most)
	text = strings.Join(strings.Fields(text), " ")
	if cut {
		text += "…"
	}
	return text
}
