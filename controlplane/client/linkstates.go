package client

import (
	"encoding/json"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

// Stated is how far the states of sites' links are: the index up to which closed runs have told
// theirs.
type Stated struct {
	Upto uint64
}

// StatesAreBehind says whether the links of a scraper's site do not have the states yet that its
// newest closed run gave them. Before anybody has told any they are not.
func StatesAreBehind(v *View, scraper ids.ID) (behind bool) {
	told, at := false, Stated{}
	for _, item := range v.WorkOf(work.LinkStates, "") {
		told = json.Unmarshal(item.Progress, &at) == nil || told
	}
	if !told {
		return false
	}
	v.ScraperJobs(scraper, func(job *Job) bool { // the newest first
		behind = job.Closed && !job.File && job.Index > at.Upto
		return !job.Closed
	})
	return behind
}
