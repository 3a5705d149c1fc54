// Package changes owns how a customer comes to know what changed since the run before. It is
// background work: an item for each run that comes to count, in a group with changeAlerts. It
// tells of a run once. The command that tells ends the item, so what a kill repeats comes to
// nothing. How runs are compared is package diff's, and the words of the notice package notices'.
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
	// MaxRows of each of the two runs are compared: five parts of the keys, each a step.
	MaxRows = 1_000_000
	// lookedBack runs of a scraper are asked whether they may be compared with.
	lookedBack = 200
	// maxTries is how often in a row a comparison fails before that is told.
	maxTries = 8
	// maxExamples rows are told of, in so many bytes each.
	maxExamples  = 10
	exampleBytes = 200
	// Characters of a name and a value in them, and how many members.
	nameChars, valueChars, namedMembers = 40, 40, 3
)

// Config is what a Kind works with. Point may be left out.
type Config struct {
	Client  client.Client
	Store   rowstore.Reads
	History *client.History
	// Point is called at "changes.after_part", "changes.before_tell" and "changes.after_tell", so
	// that tests can end the process there.
	Point func(name string)
	// Rows is how many rows of a run are compared; 0: MaxRows.
	Rows int64
	// PartRows is how many of them are a part; 0: as package diff has it.
	PartRows int64
}

type teller struct{ Config }

// Kind is the comparing of runs with those before them.
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

// progress is how far a comparison has come. It holds of the rows that it names: where they are
// others, it begins anew. The key that nobody asked for is not in it: its name has any length.
type progress struct {
	From   ids.ID    `json:"from"`
	Rows   [2]int64  `json:"rows"`  // of the older run and the newer one
	Asked  []string  `json:"asked"` // the group's key
	On     []string  `json:"on"`
	Part   int       `json:"part"` // the next one
	Sums   diff.Sums `json:"sums"`
	Sample []string  `json:"sample"`
}

// continues says whether what another progress has found still holds.
func (p *progress) continues(before *progress) bool {
	return p.From == before.From && p.Rows == before.Rows && slices.Equal(p.Asked, before.Asked) &&
		slices.Equal(p.On, before.On)
}

// encode is the progress as an item keeps it. A < takes one byte, and not six: names of fields may
// be made of them.
func (p *progress) encode() ([]byte, error) {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(p)
	return to.Bytes(), err
}

// comparison is a run, and what is asked of it.
type comparison struct {
	item    work.Item
	job     *client.Job
	older   *client.Job
	scraper *client.Scraper
	alerts  *client.Alerts
}

// step compares one part of the rows, and tells what changed behind the last.
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
	case errors.As(err, &refused) && refused.Code == fault.InvalidRequest: // of the key
		return t.tell(ctx, c, client.RunChanges{}, refused.Detail)
	case item.Failures >= maxTries:
		return t.tell(ctx, c, client.RunChanges{}, "its rows could not be read")
	}
	return work.Outcome{}, fmt.Errorf("apiserver: changes of run %s: %w", c.job.ID, err)
}

// find is what is to be compared; nil: nothing is any more.
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
		return nil, nil // or the rows of the run before it are gone each time
	}
	c.alerts = group.Alerts
	if err := t.findOlder(ctx, view, c); err != nil || c.older == nil {
		return nil, err
	}
	return c, nil
}

// findOlder finds what a run is compared with: the newest run before it that is ready. One of kept
// bodies stands for the run whose pages it reads. So it counts where that is the newest one itself:
// what it has of an older run, or of a rerun, is not what changed.
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
		return seen < lookedBack
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

// isExtract says whether a run is one of kept bodies.
func isExtract(job *client.Job) bool { return job.File && job.Rest }

// reads says whether a run of kept bodies has rows of the pages that another run kept.
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

// ready says whether a run is complete and counts, and reads all that its scraper reads. A rerun
// reads what other runs left: beside them all else would seem to be gone.
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

// addPart compares a part, and takes examples of it as long as there is room.
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

// tell tells what changed, or why that is not known, which ends the item.
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

// example is a change in a few words, of at most exampleBytes. Texts of pages are cleaned.
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

// naming are the members that a row is told by: those of the key, or else its first ones.
func naming(row json.RawMessage, key []string) (texts []string) {
	for m := rowstore.MembersOf(row); m.Next() && len(texts) < namedMembers; {
		if len(key) > 0 && !slices.Contains(key, m.Key) ||
			len(key) == 0 && strings.HasPrefix(m.Key, "_") || m.Value == "null" {
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

// orNothing is a value as a sentence has it: a text in quotes, "nothing" where there is none.
func orNothing(value string) string {
	if value == "" || value == "null" {
		return "nothing"
	}
	if text, ok := rowstore.TextOf(value); ok {
		return `"` + short(text, valueChars) + `"`
	}
	return short(value, valueChars)
}

// short is a text of a page on one line, of so many characters.
func short(text string, most int) string {
	text, cut := scraped.Clean(text, most)
	text = strings.Join(strings.Fields(text), " ")
	if cut {
		text += "…"
	}
	return text
}
