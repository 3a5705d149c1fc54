package apitest

import (
	"context"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// PlayTrial plays the loop for the next trial that is launched. page makes the trial's one page
// from its recipe. The returned function waits for the end, and returns the trial as it was when it
// came.
func (s *Server) PlayTrial(t *testing.T, store rowstore.Store,
	page func(model.Recipe) *model.Page) func() *client.Job {
	t.Helper()
	var job *client.Job
	var done sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	done.Go(func() {
		defer cancel()
		if job = s.AwaitTrial(ctx); job == nil {
			t.Error("no trial was launched")
			return
		}
		s.Client.Dispatch(t, job.ID, 0)
		made := page(s.Client.View().Recipe(job.Scraper, job.Revision).Recipe)
		made.Job, made.Fetch, made.URL, made.Last, made.At = job.ID, s.IDs.New(),
			"https://shop.test/", true, 1
		receipts, err := store.PutPages(ctx, []rowstore.PageWrite{{Page: made,
			Job: rowstore.Job{ID: job.ID, Customer: job.Customer, Group: job.Group,
				Scraper: job.Scraper, Started: 1}}})
		if err == nil {
			err = s.Client.Settle(ctx, []model.Receipt{*receipts[0]}, nil)
		}
		if err != nil {
			t.Error(err)
		}
		s.Client.CloseRun(t, job.ID)
	})
	return func() *client.Job {
		done.Wait()
		return job
	}
}

// AwaitTrial waits until a trial is open. It returns nil if ctx ends first.
func (s *Server) AwaitTrial(ctx context.Context) *client.Job {
	for ctx.Err() == nil {
		for _, job := range s.Client.View().OpenJobs() {
			if job.Trial() {
				return job
			}
		}
		<-time.After(time.Millisecond)
	}
	return nil
}
