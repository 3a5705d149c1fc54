package launch

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Trial is a run of one address that only its caller and the ledger see: a sample or a preview.
type Trial struct {
	Source model.Source
	URL    string
	Field  string       // of the request, for errors about URL
	Recipe model.Recipe // its pagination is ignored: a trial reads one page
	// Tiers are the ways of fetching that may be used; 0: all that the server allows.
	Tiers model.TierSet
	// MaxCharge caps the cost, in micros; nil: no cap.
	MaxCharge *int64
	// Scraper and Group are for the ledger; either may be zero.
	Scraper ids.ID
	Group   ids.ID
	// Shared lets other calls of the same trial use the result of this one. Joins lets this call
	// use the result of another.
	Shared, Joins bool
}

// same hashes all that decides the result of a trial, which a cap does not.
func (t *Trial) same(trial *client.Trial, tiers model.TierSet) (same client.Hash) {
	if !t.Shared {
		return same
	}
	said, err := json.Marshal(struct {
		Trial   *client.Trial
		URL     string
		Scraper ids.ID
		Tiers   model.TierSet
	}{trial, t.URL, t.Scraper, tiers})
	if err != nil {
		return same // then no other call shares it
	}
	return sha256.Sum256(said)
}

// StartTrial launches a trial. Faults: those of Errors that need no idempotency key, INVALID_URL,
// source_unreachable and trial_limit_reached.
func (l *Launcher) StartTrial(ctx context.Context, from *Caller, t *Trial) error {
	if err := checkTrial(ctx, l.Guard, from.Customer, t); err != nil {
		return err
	}
	trial, tiers, err := t.wanted(from)
	if err != nil || l.join(from, trial) {
		return err
	}
	if err := affordable(from.View, from.Customer); err != nil {
		return err
	}
	in, _, err := l.claimCall(ctx, from) // without a key, so there is no replay
	if err != nil {
		return err
	}
	defer in.end(ctx)
	taken, err := in.storeAddresses(ctx, &listed{field: t.Field, urls: []string{t.URL}}, nil)
	if err != nil {
		return err
	}
	endpoint, _ := model.EndpointOf(t.Recipe.Endpoint)
	launched, err := in.commit(ctx, client.LaunchRun{Scraper: t.Scraper, Links: taken.links,
		Trial: trial, MaxCharge: t.MaxCharge, Charge: endpoint.Charge, Tiers: tiers,
		IgnoresRobots: t.Recipe.Politeness.IgnoreRobots})
	from.Joined = err == nil && launched.Job != in.run
	return err
}

// wanted returns the trial to launch for a caller, and the ways of fetching.
func (t *Trial) wanted(from *Caller) (*client.Trial, model.TierSet, error) {
	trial := &client.Trial{Source: t.Source, Recipe: t.Recipe, Group: t.Group}
	trial.Recipe.Pagination = nil
	tiers := t.Tiers
	if tiers == 0 {
		request := model.Scraper{SourceConfig: model.SourceConfig{Curl: t.Recipe.Curl}}
		var err error
		if tiers, err = Tiers(from.View, &request); err != nil {
			return nil, 0, err
		}
	}
	trial.Same, trial.Joins = t.same(trial, tiers), t.Joins
	if from.Key != nil && from.Key.Scope == model.ScopeLLMRead {
		trial.Key = from.Key.ID
	}
	return trial, tiers, nil
}

// join finds the same trial of another call, so that nothing has to be launched. It may miss one
// that was launched elsewhere just now; the command finds that.
func (l *Launcher) join(from *Caller, trial *client.Trial) bool {
	if !trial.Joins || trial.Same == (client.Hash{}) {
		return false
	}
	same := l.Client.View().SameTrial(from.Customer, trial.Same, l.Clock.Now().UnixMilli())
	if same == nil {
		return false
	}
	from.Job, from.Joined = same.ID, true
	return true
}

// checkTrial refuses an address that a trial could not reach, before anything is made.
func checkTrial(ctx context.Context, guard Guard, customer string, t *Trial) error {
	canonical, err := address.Canonical(t.URL)
	if err == nil {
		err = guard.CheckURL(t.URL)
	}
	if err == nil && t.Source == model.SourcePreviewURL &&
		len((&curl.Request{URL: t.URL}).Placeholders()) > 0 {
		err = fault.New(fault.InvalidURL, "Only a curl command can have placeholders of tokens.")
	}
	if err != nil {
		return refusedAddress(t.Field, t.URL, err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	err = guard.CheckHost(ctx, customer, address.HostOf(canonical))
	switch {
	case err == nil:
		return nil
	case fault.CodeOf(err) == fault.PageAddressForbidden:
		return refusedAddress(t.Field, t.URL,
			fault.New(fault.InvalidURL, "%s.", fault.Lookup(fault.PageAddressForbidden).Title))
	}
	return Unreachable(fault.CodeOf(err), 0, "")
}

// Unreachable is the answer of a call whose page could not be read. status is the HTTP status of
// the page, 0 without one; detail is what else to say. Its code is source_unreachable.
func Unreachable(code fault.Code, status uint16, detail string) error {
	if detail != "" {
		detail = ": " + detail
	}
	if status > 0 {
		return fault.New(fault.SourceUnreachable, "%s (%s, HTTP status %d)%s",
			fault.Lookup(code).Title, code, status, detail)
	}
	return fault.New(fault.SourceUnreachable, "%s (%s)%s", fault.Lookup(code).Title, code, detail)
}
