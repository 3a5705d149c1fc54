package api

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// RunProfile is what the fields of a run's rows are like.
type RunProfile struct {
	Rows       int64          `json:"rows"`
	Fields     []FieldProfile `json:"fields"`
	MoreFields bool           `json:"moreFields"`
}

// FieldProfile is what one field is like. The numbers are nil where it has none.
type FieldProfile struct {
	Name          string            `json:"name"`
	FillRate      float64           `json:"fillRate"` // share of rows with a value, 0 to 1
	Types         map[string]int64  `json:"types"`    // values by type
	Min           *float64          `json:"min"`
	Max           *float64          `json:"max"`
	Distinct      int64             `json:"distinct"`
	DistinctExact bool              `json:"distinctExact"`
	Examples      []json.RawMessage `json:"examples"`
}

// Profile answers what the fields of a run's rows are like.
func (c *Client) Profile(ctx context.Context, job string) (profile Answer[RunProfile], err error) {
	err = c.within(5*time.Minute).get(ctx, "/api/scraper/data/profile",
		url.Values{"jobId": {job}}, &profile)
	return profile, err
}

// RunOddities are in what a run is unlike the runs before it.
type RunOddities struct {
	ComparedWith []string `json:"comparedWith"` // ids of runs
	Oddities     []struct {
		Text string `json:"text"` // why, in words
	} `json:"oddities"`
}

// Oddities answers in what a run that has ended is unlike the runs before it.
func (c *Client) Oddities(ctx context.Context, job string) (odd Answer[RunOddities], err error) {
	err = c.within(5*time.Minute).get(ctx, "/api/scraper/data/oddities",
		url.Values{"jobId": {job}}, &odd)
	return odd, err
}
