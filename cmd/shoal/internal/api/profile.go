package api

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// RunProfile describes the fields of a run's rows.
type RunProfile struct {
	Rows       int64          `json:"rows"`
	Fields     []FieldProfile `json:"fields"`
	MoreFields bool           `json:"moreFields"`
}

// FieldProfile describes one field. Numbers are nil if it has none.
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

// Profile describes the fields of a run's rows.
func (c *Client) Profile(ctx context.Context, job string) (profile Answer[RunProfile], err error) {
	err = c.within(5*time.Minute).get(ctx, "/api/scraper/data/profile",
		url.Values{"jobId": {job}}, &profile)
	return profile, err
}

// RunOddities are the differences of a run from the runs before it.
type RunOddities struct {
	ComparedWith []string `json:"comparedWith"` // ids of runs
	Oddities     []struct {
		Text string `json:"text"` // the reason, in words
	} `json:"oddities"`
}

// Oddities returns how a run that has ended differs from the runs before it.
func (c *Client) Oddities(ctx context.Context, job string) (odd Answer[RunOddities], err error) {
	err = c.within(5*time.Minute).get(ctx, "/api/scraper/data/oddities",
		url.Values{"jobId": {job}}, &odd)
	return odd, err
}
