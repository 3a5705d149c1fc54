// Package harvest reads the sitemaps of a scraper's site, as background work. It finds them,
// requests them politely, and writes what they name to the row store. However often it is killed,
// it resumes from there. Package sitemap parses the files.
//
// # Guarantees
//
// All that a harvest knows is a journal in the row store, in numbered batches. A batch has
// addresses, sitemaps to read, and sitemaps read. A resumed harvest reads the journal first. The
// first batch with a number wins. So of two owners one writes the next batch, and the other learns
// that it is behind. Nothing is lost or duplicated, even if a file differs the second time.
package harvest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	guards "shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/work"
)

// Bounds of one harvest.
const (
	maxFiles  = 10_000 // sitemaps
	maxRoots  = 100    // sitemaps to begin with
	maxLevels = 4      // levels of sitemaps that name sitemaps
	longest   = 6 * time.Hour
	stepTime  = 2 * time.Minute // of one step, roughly: a file is read to its end
	// Attempts without progress. After them a harvest ends with what it has.
	tries = 5
	// shortRests is how long a harvest waits while disks are short. behindRests is how long it
	// waits for another owner to finish.
	shortRests  = 10 * time.Second
	behindRests = 5 * time.Second
)

// Sender sends one request: the egress client.
type Sender interface {
	Do(ctx context.Context, ask *egress.Request) (*egress.Response, error)
}

// Config is what harvests need. All but Point and Reader must be set.
type Config struct {
	Client interface {
		client.Proposer
		client.Reader
	}
	Store  Store
	Sender Sender
	Reader *guards.Guard // guards the reading of sitemaps; nil: one that keeps none
	// HostRate is how many requests a second this process sends to a host, besides those of runs.
	HostRate float64
	Clock    clock.Clock
	IDs      ids.Source
	// Point is called at named places, where tests end the process: "work.harvest.before_batch",
	// "work.harvest.after_batch", "work.harvest.before_end" and "work.harvest.after_end".
	Point func(name string)
}

// Kind is the kind of background work that reads sitemaps.
func Kind(config Config) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	if config.Reader == nil {
		config.Reader = guards.New("apiserver", guards.Config{Clock: config.Clock})
	}
	k := &harvests{config, newWeb(&config)}
	return work.Kind{Name: work.Harvest, AtOnce: 4, Held: 16, PerCustomer: 2,
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			outcome, err := k.step(ctx, item)
			if err != nil {
				return outcome, fmt.Errorf("harvest sitemaps: %w", err)
			}
			return outcome, nil
		}}
}

type harvests struct {
	Config
	web *web
}

// step works on a harvest for some minutes, or ends it.
func (k *harvests) step(ctx context.Context, item work.Item) (work.Outcome, error) {
	view, err := k.Client.Fresh(ctx)
	if err != nil {
		return work.Outcome{}, err
	}
	h := view.Harvest(item.ID)
	switch {
	case h == nil || h.State != client.HarvestRunning || h.Orphaned(view):
		return work.Done(), nil // another owner ended it, or nobody wants it
	case view.IsShort():
		return work.Rest(item.Progress, shortRests), nil
	}
	j, err := openJournal(ctx, &k.Config, h)
	if err != nil {
		return work.Outcome{}, err
	}
	gaveUp, ended := item.Failures >= tries, j.ended
	if !ended && !gaveUp {
		ended, err = k.goOn(ctx, j)
	}
	if ended || gaveUp {
		err = k.end(ctx, j, gaveUp)
	}
	switch {
	case errors.Is(err, errBehind):
		return work.Rest(item.Progress, behindRests), nil
	case err != nil:
		return work.Outcome{}, err
	case ended || gaveUp:
		return work.Done(), nil
	}
	return work.GoOn(strconv.AppendUint(nil, uint64(j.next), 10)), nil
}

// goOn reads sitemaps until none is left, or the step has lasted long enough.
func (k *harvests) goOn(ctx context.Context, j *journal) (ended bool, err error) {
	began := k.Clock.Now()
	r := newReading(k, j)
	if len(j.files) == 0 {
		if err := r.findFirst(ctx); err != nil {
			return false, err
		}
	}
	for {
		f := j.unread()
		now := k.Clock.Now()
		switch {
		case f == nil, j.count >= j.harvest.Cap,
			now.Sub(time.UnixMilli(j.harvest.CreatedAt)) > longest:
			return true, nil
		case now.Sub(began) > stepTime:
			return false, nil
		}
		if err := r.read(ctx, f); err != nil {
			return false, err
		}
	}
}

// end reports how many addresses there are, or why there are none. It first marks the journal as
// ended, where an owner that is behind finds it. A harvest that gave up ends early, and without
// addresses as an internal error.
func (k *harvests) end(ctx context.Context, j *journal, gaveUp bool) error {
	if !j.ended {
		if err := j.add(ctx, &row{Ended: true}); err != nil {
			return err
		}
		if err := j.write(ctx); err != nil {
			return err
		}
	}
	end := client.EndHarvest{ID: j.harvest.ID, Count: j.count}
	if j.count == 0 {
		end.Code, end.Detail = j.verdict()
	}
	if gaveUp && j.count == 0 {
		end.Code, end.Detail = string(fault.Internal), ""
	}
	k.Point("work.harvest.before_end")
	_, err := client.Do(ctx, k.Client, end, nil)
	k.Point("work.harvest.after_end")
	return err
}

// verdict says why a harvest has found nothing; "": there is nothing to find. Whoever names a
// sitemap that cannot be read has not said that. Guesses have, where any of them was answered.
func (j *journal) verdict() (code, detail string) {
	answered := false
	var away *file
	for i := range j.files {
		switch f := &j.files[i]; f.result {
		case malformed:
			return string(fault.SitemapMalformed), "nothing can be read of " + f.URL
		case unreachable:
			if away == nil || away.Guessed {
				away = f
			}
		case unread:
		default:
			answered = true
		}
	}
	if away != nil && (!away.Guessed || !answered) {
		return string(fault.SourceUnreachable), "no sitemap from " + away.URL
	}
	return "", ""
}
