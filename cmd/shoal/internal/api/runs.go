package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"shoal.dev/shoal/pkg/model"
)

// GroupRuns is the result for each scraper of a group.
type GroupRuns struct {
	GroupID string `json:"groupId"`
	Jobs    []struct {
		JobID     string `json:"jobId"`
		ScraperID string `json:"scraperId"`
		Status    string `json:"status"`
	} `json:"jobs"`
	Skipped []struct {
		ScraperID string `json:"scraperId"`
		Reason    string `json:"reason"`
	} `json:"skipped"`
	SkippedTotal int `json:"skippedTotal"`
}

func groupPath(id string) string { return "/api/scraper/group/" + url.PathEscape(id) }

// RunGroup launches the scrapers of a group; maxCharge in micros, nil for no cap.
func (c *Client) RunGroup(ctx context.Context, id string, maxCharge *int64) (Answer[GroupRuns],
	error) {
	var runs Answer[GroupRuns]
	path := groupPath(id) + "/run"
	if maxCharge != nil {
		path += "?maxChargeMicros=" + strconv.FormatInt(*maxCharge, 10)
	}
	err := c.within(2*time.Minute).send(ctx, http.MethodPost, path, nil, &runs)
	return runs, err
}

// StopGroup stops all runs of a group.
func (c *Client) StopGroup(ctx context.Context, id string) (Answer[GroupRuns], error) {
	var runs Answer[GroupRuns]
	err := c.send(ctx, http.MethodPost, groupPath(id)+"/stop", nil, &runs)
	return runs, err
}

// Requeue launches a run of the failed links of another run; maxCharge in micros, nil for no cap.
func (c *Client) Requeue(ctx context.Context, job string, maxCharge *int64) (Answer[Launch],
	error) {
	var launch Answer[Launch]
	path := "/api/admin/jobs/" + url.PathEscape(job) + "/requeue"
	if maxCharge != nil {
		path += "?maxChargeMicros=" + strconv.FormatInt(*maxCharge, 10)
	}
	err := c.within(10*time.Minute).send(ctx, http.MethodPost, path, nil, &launch)
	return launch, err
}

// ReExtract says which run's kept bodies are read again, and with which fields; nil: the scraper's.
type ReExtract struct {
	JobID       string        `json:"jobId"`
	ItemsConfig []model.Field `json:"itemsConfig,omitempty"`
}

// ReExtract makes a run from the kept bodies of another one.
func (c *Client) ReExtract(ctx context.Context, scraper string, of ReExtract) (Answer[Launch],
	error) {
	var launch Answer[Launch]
	err := c.send(ctx, http.MethodPost, "/api/scraper/"+url.PathEscape(scraper)+"/re-extract", of,
		&launch)
	return launch, err
}

// ScraperStart is how a scraper of a group starts; NextStart is nil without a schedule.
type ScraperStart struct {
	ScraperID string  `json:"scraperId"`
	NextStart *string `json:"nextStart"`
}

// PutStartType sets when a group starts automatically.
func (c *Client) PutStartType(ctx context.Context, id, startType string) (Answer[[]ScraperStart],
	error) {
	var starts Answer[[]ScraperStart]
	err := c.send(ctx, http.MethodPut, groupPath(id)+"/start-type/"+url.PathEscape(startType), nil,
		&starts)
	return starts, err
}
