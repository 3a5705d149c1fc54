package client

import (
	"context"
	"encoding/json"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// Stated is the index up to which closed runs have reported the states of their sites' links.
type Stated struct {
	Upto uint64
}

// StatesAreBehind says whether a site's links lack the states that the scraper's newest closed run
// gave them. It is false until link states are first reported.
func (h *History) StatesAreBehind(ctx context.Context, v *View, scraper ids.ID) (bool, error) {
	told, at := false, Stated{}
	for _, item := range v.WorkOf(work.LinkStates, "") {
		told = json.Unmarshal(item.Progress, &at) == nil || told
	}
	if !told {
		return false, nil
	}
	var closed *Job
	v.ScraperJobs(scraper, func(job *Job) bool { // newest first
		if job.Closed {
			closed = job
		}
		return closed == nil
	})
	if s := v.Scraper(scraper); closed == nil && s != nil && s.Past != nil {
		var err error
		if closed, err = h.Run(ctx, v, s.LastJob); err != nil {
			return false, err
		}
	}
	return closed != nil && closed.Closed && !closed.File && closed.Index > at.Upto, nil
}
