package apiserver

import (
	"context"
	"reflect"
	"time"

	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
)

const (
	// firstPlansWithin is how long a start may wait for plans before it accepts calls.
	firstPlansWithin = 5 * time.Second
	plansAgain       = time.Minute
)

// CheckPlans reports what is wrong with a catalogue of plans.
func CheckPlans(file []byte) error {
	_, err := plans.Parse(file)
	return err
}

// bringPlans proposes the plans of --plans to the cluster if it has none, and warns if it has
// others. It gives up after firstPlansWithin, and returns false if it should be tried again.
func (s *Server) bringPlans(ctx context.Context) bool {
	if s.config.Plans == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, firstPlansWithin)
	defer cancel()
	own := s.ownPlans.Settings()
	view, err := s.config.Client.Fresh(ctx)
	hold, brought := client.Settings{}, false
	if err == nil {
		hold = *view.Settings()
	}
	if err == nil && len(hold.Plans) == 0 {
		brought = true
		hold, err = client.Do(ctx, s.config.Client, client.SeedPlans{Plans: own}, nil)
	}
	switch {
	case err != nil:
		s.config.Logger.Warn("the plans of --plans have not reached the cluster, and hold "+
			"here while it has none",
			"error", err)
	case !reflect.DeepEqual(hold.Plans, own):
		s.config.Logger.Warn("--plans does not count: the cluster has other plans, which " +
			"PUT /api/admin/settings changes")
	case brought:
		s.config.Logger.Info("the plans of --plans are those of the cluster from now on")
	}
	return err == nil
}

// keepBringingPlans retries until bringPlans is done or ctx ends. A cluster that is being upgraded
// does not accept plans yet.
func (s *Server) keepBringingPlans(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.config.Clock.After(plansAgain):
		}
		if s.bringPlans(ctx) {
			return
		}
	}
}
