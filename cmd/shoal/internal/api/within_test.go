package api

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// asked is a transport that answers nothing, and records the request.
type asked struct{ request *http.Request }

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.request = r
	return nil, errors.New("no answer")
}

// TestCallsHaveTheServersTime: no call is cut off before the server's own time is over.
func TestCallsHaveTheServersTime(t *testing.T) {
	transport := &asked{}
	client := New("http://a.example", "", clock.System{}, nil)
	client.http.Transport = transport
	client.Impatient()
	ctx := t.Context()
	for name, c := range map[string]struct {
		server time.Duration
		call   func() error
	}{
		"most": {70 * time.Second, func() error {
			return last(client.Detect(ctx, Look{}))
		}},
		"recount": {10 * time.Minute, func() error {
			return last(client.Recount(ctx))
		}},
		"reconcile": {10 * time.Minute, func() error {
			return last(client.Reconcile(ctx, 1))
		}},
		"restore": {time.Hour, func() error {
			return last(client.RestoreKept(ctx, "name", false, false))
		}},
		"requeue": {10 * time.Minute, func() error {
			return last(client.Requeue(ctx, "a", nil))
		}},
		"run": {5 * time.Minute, func() error {
			return last(client.RunScraper(ctx, "a", nil))
		}},
		"group run": {2 * time.Minute, func() error {
			return last(client.RunGroup(ctx, "a", nil))
		}},
		"profile": {5 * time.Minute, func() error {
			return last(client.Profile(ctx, "a"))
		}},
		"oddities": {5 * time.Minute, func() error {
			return last(client.Oddities(ctx, "a"))
		}},
		"diff": {30 * time.Minute, func() error {
			return last(client.Diff(ctx, DiffQuery{}, 1))
		}},
		"rows": {5 * time.Minute, func() error {
			return last(client.GroupRows(ctx, "a"))
		}},
		"audit": {10 * time.Minute, func() error {
			return last(client.Audit(ctx, AuditFilter{}, 1))
		}},
		"trail": {10 * time.Minute, func() error {
			for _, err := range client.AuditTrail(ctx) {
				return err
			}
			return nil
		}},
		"errors": {2 * time.Minute, func() error {
			for _, err := range client.JobErrors(ctx, &Job{}) {
				return err
			}
			return nil
		}},
	} {
		begun := time.Now()
		if err := c.call(); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
		until, bound := transport.request.Context().Deadline()
		if least := begun.Add(c.server + margin); !bound || until.Before(least) {
			t.Errorf("%s is cut off %v too early", name, least.Sub(until))
		}
	}
}

func last[T any](_ T, err error) error { return err }
