package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/model"
)

// How often progress is shown, and over how long its pace is measured.
const (
	redrawEvery = 100 * time.Millisecond // on a terminal
	printEvery  = 2 * time.Second        // in a pipe or file
	paceWindow  = 3 * time.Second
	barWidth    = 24
)

// progress shows a run's progress: on a terminal one line that is redrawn, elsewhere a line now and
// then.
type progress struct {
	t     *terminal.Terminal
	links int64 // of the run's list, 0 when unknown
	drawn time.Time
	shown bool // the terminal shows a line that the next one replaces

	// The pace is measured from one of two marks, so that it never covers more than two windows.
	// The time left is estimated from everything seen, since hosts answer by turns.
	first, older, newer mark
}

type mark struct {
	at           time.Time
	pages, ended int64
}

// show handles a message of the stream.
func (p *progress) show(m api.Progress) {
	now := p.t.Clock.Now()
	here := mark{now, m.TotalRequests, endedLinks(m)}
	if p.older.at.IsZero() {
		p.first, p.older, p.newer = here, here, here
	}
	if now.Sub(p.newer.at) >= paceWindow {
		p.older, p.newer = p.newer, here
	}
	every := printEvery
	if p.t.Columns > 0 {
		every = redrawEvery
	}
	if !m.Final() && !p.drawn.IsZero() && now.Sub(p.drawn) < every {
		return
	}
	p.drawn = now
	line := p.line(m, now)
	if p.t.Columns == 0 {
		p.t.Notef("%s", line)
		return
	}
	p.shown = true
	_, _ = fmt.Fprintf(p.t.Err, "\r\x1b[K%s", terminal.Cut(line, p.t.Columns-1))
}

// clear keeps the progress line and starts a new one.
func (p *progress) clear() {
	if p.shown {
		p.t.Notef("")
		p.shown = false
	}
}

func (p *progress) line(m api.Progress, now time.Time) string {
	links := p.links
	if m.TotalLinks != nil {
		links = *m.TotalLinks
	}
	ended := endedLinks(m)
	var parts []string
	if links > 0 {
		share := float64(min(ended, links)) / float64(links)
		if p.t.Columns >= 90 {
			full := int(share * barWidth)
			parts = append(parts,
				"["+strings.Repeat("=", full)+strings.Repeat(" ", barWidth-full)+"]")
		}
		parts = append(parts, fmt.Sprintf("%3d%% of %s", int(share*100), terminal.Count(links)))
	}
	parts = append(parts, terminal.Plural(m.TotalRequests, "page"),
		terminal.Plural(m.ItemsQuantity, "row"))
	if m.ErrorLinks != nil {
		parts = append(parts, terminal.Plural(*m.ErrorLinks, "error"))
	}
	if since := now.Sub(p.older.at); since > 0 && !m.Final() {
		parts = append(parts, fmt.Sprintf("%.0f pages/s",
			float64(m.TotalRequests-p.older.pages)/since.Seconds()))
	}
	if m.ChargedMicros != nil {
		parts = append(parts, terminal.Euros(*m.ChargedMicros))
	}
	if left := p.left(links, ended, now); left != "" && !m.Final() {
		parts = append(parts, left)
	}
	return strings.Join(parts, "  ")
}

// endedLinks is how many links of a run have ended, if the server reports it.
func endedLinks(m api.Progress) int64 {
	if m.SuccessLinks != nil && m.ErrorLinks != nil {
		return *m.SuccessLinks + *m.ErrorLinks
	}
	return m.TotalRequests
}

// left estimates how long the remaining links take at the pace so far, "" if unknown.
func (p *progress) left(links, ended int64, now time.Time) string {
	since, done := now.Sub(p.first.at), ended-p.first.ended
	if since < paceWindow || done <= 0 || ended >= links {
		return ""
	}
	left := time.Duration(float64(links-ended) / float64(done) * float64(since))
	switch {
	case left < time.Minute:
		return fmt.Sprintf("about %d s left", int(left.Seconds())+1)
	case left < time.Hour:
		return fmt.Sprintf("about %d min left", int(left.Minutes())+1)
	}
	return fmt.Sprintf("about %d h %d min left", int(left.Hours()), int(left.Minutes())%60)
}

// Follow shows a run's progress until it ends, then how it ended, and returns the exit code.
func Follow(ctx context.Context, t *terminal.Terminal, client *api.Client, job string,
	links int64) error {
	p := &progress{t: t, links: links}
	final, err := client.Follow(ctx, job, p.show)
	p.clear()
	if ctx.Err() != nil {
		return &terminal.ExitError{Code: terminal.ExitInterrupted, Text: fmt.Sprintf(
			"no longer following; the run goes on.\n  shoal job %s --follow   follows it "+
				"again\n  shoal stop %s           stops it",
			job, job)}
	}
	if err != nil {
		return fmt.Errorf("follow run %s (which goes on): %w", job, err)
	}
	record, err := client.Job(ctx, job)
	if err != nil {
		return fmt.Errorf("run %s ended %s; its record: %w", job, final.State, err)
	}
	if record == nil {
		return fmt.Errorf("run %s ended %s and is not in the history", job, final.State)
	}
	t.Notef("%s", outcome(record))
	return verdict(record)
}

// outcome sums up a run's record in a sentence.
func outcome(job *api.Job) string {
	text := fmt.Sprintf("%s: %s, %s, %s", job.State, terminal.Plural(job.ItemsQuantity, "row"),
		terminal.Plural(job.TotalRequests, "page"), terminal.Plural(job.ErrorLinks, "failed link"))
	if job.Duration != nil {
		text += ", " + terminal.Lasted(*job.Duration)
	}
	for _, reason := range []string{job.StopReason, job.ErrorMessage} {
		if reason != "" {
			text += " · " + terminal.Printable(reason)
		}
	}
	return text
}

// verdict is the exit code for a run that has ended.
func verdict(job *api.Job) error {
	switch model.JobState(job.State) {
	case model.Failed:
		return &terminal.ExitError{Code: terminal.ExitRunFailed}
	case model.Stopped:
		return &terminal.ExitError{Code: terminal.ExitRunStopped}
	}
	return nil
}
