package client

import (
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
func StatesAreBehind(v *View, scraper ids.ID) (behind bool) {
	told, at := false, Stated{}
	for _, item := range v.WorkOf(work.LinkStates, "") {
		told = json.Unmarshal(item.Progress, &at) == nil || told
	}
	if !told {
		return false
	}
	v.ScraperJobs(scraper, func(job *Job) bool { // newest first
		behind = job.Closed && !job.File && job.Index > at.Upto
		return !job.Closed
	})
	return behind
}
