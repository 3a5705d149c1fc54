package fsm

import (
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// maxTrials bounds a key's billable trials a day, for the scope LLM_READ (decision 7).
const maxTrials = 20

var errTrials = fault.New(fault.TrialLimitReached,
	"a key of the scope LLM_READ has %d billable samples and previews a day (UTC)", maxTrials)

const trialRevision = 1

func launchTrial(tx *state.Tx, p *command.LaunchRunPayload) (command.Launched, error) {
	none := command.Launched{}
	trial := p.Trial
	if trial.Joins && trial.Same != (state.Hash{}) {
		if same := tx.SameTrial(p.Customer, trial.Same, tx.Now); same != nil {
			return launchedTrial(same), nil // it is paid, or will be
		}
	}
	if !p.Scraper.IsZero() {
		if _, err := launchedScraper(tx, p); err != nil {
			return none, err
		}
	}
	if group := tx.Group(trial.Group); !trial.Group.IsZero() &&
		(group == nil || group.Customer != p.Customer) {
		return none, fault.Invalid(fault.GroupNotFound, "groupId", "there is no such group")
	}
	if err := chargedBy(trial.Recipe, p.Charge); err != nil {
		return none, err
	}
	prices, unpaid, err := fundedPrices(tx, p)
	switch {
	case err != nil:
		return none, err
	case unpaid:
		return none, fault.New(fault.WalletInsufficient, neverToppedUp)
	}
	if err := countTrial(tx, p); err != nil {
		return none, err
	}
	job := newJob(tx, p, prices)
	job.Scraper, job.Revision, job.Source, job.Key = job.ID, trialRevision, trial.Source, trial.Key
	job.Same = trial.Same
	tx.PutRecipe(&state.Recipe{Scraper: job.Scraper, Revision: job.Revision, Recipe: trial.Recipe})
	writeRun(tx, job, &state.Entry{Source: trial.Source, Scraper: p.Scraper, Group: trial.Group})
	return launchedTrial(job), nil
}

func launchedTrial(job *state.Job) command.Launched {
	return command.Launched{Job: job.ID, Links: job.Links, State: job.State, Queued: job.Queued}
}

// utcDay returns the day of a time in Unix milliseconds, as days since 1970.
func utcDay(millis int64) int64 { return millis / (24 * time.Hour).Milliseconds() }

// countTrial counts a billable trial of its key or grant.
func countTrial(tx *state.Tx, p *command.LaunchRunPayload) error {
	if p.Trial.Key.IsZero() {
		return nil
	}
	if grant := tx.Grant(p.Trial.Key); grant != nil && grant.Customer == p.Customer {
		counted := *grant
		err := addTrial(&counted.TrialDay, &counted.Trials, tx.Now)
		if err == nil {
			tx.PutGrant(&counted)
		}
		return err
	}
	known := tx.Key(p.Trial.Key)
	if known == nil || known.Customer != p.Customer {
		return fault.New(fault.Unauthorized, "the key was revoked")
	}
	key := *known
	err := addTrial(&key.TrialDay, &key.Trials, tx.Now)
	if err == nil {
		tx.PutKey(&key)
	}
	return err
}

// uncountTrial uncounts a trial that delivered nothing.
func uncountTrial(tx *state.Tx, job *state.Job) {
	if known := tx.Grant(job.Key); known != nil {
		grant := *known
		if dropTrial(grant.TrialDay, &grant.Trials, job) {
			tx.PutGrant(&grant)
		}
	}
	if known := tx.Key(job.Key); known != nil {
		key := *known
		if dropTrial(key.TrialDay, &key.Trials, job) {
			tx.PutKey(&key)
		}
	}
}

// addTrial counts a trial at a time among the trials of a day, of a key or a grant.
func addTrial(day *int64, trials *uint32, at int64) error {
	if today := utcDay(at); *day != today {
		*day, *trials = today, 0
	}
	if *trials >= maxTrials {
		return errTrials
	}
	*trials++
	return nil
}

// dropTrial takes a trial off the trials of a day, unless it delivered something or belongs to
// another day. It reports whether it did.
func dropTrial(day int64, trials *uint32, job *state.Job) bool {
	if job.Delivered > 0 || day != utcDay(job.Queued) || *trials == 0 {
		return false
	}
	*trials--
	return true
}
