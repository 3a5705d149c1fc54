package fsm

import (
	"fmt"
	"reflect"
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// putSettings changes the operators' settings. Units that are out keep their reservations, and
// return them when they come back.
func putSettings(tx *state.Tx, p command.PutSettingsPayload) (state.Settings, error) {
	known := *tx.Settings()
	next := known
	if p.BillingOff != nil {
		next.BillingOff = *p.BillingOff
	}
	if p.SignUp != nil {
		next.SignUp = *p.SignUp
	}
	if u := p.Uploads; u != nil {
		next.Uploads = *u
		if u.Heavy > command.MaxHeavyImports || u.Seconds > command.MaxUploadSeconds ||
			u.HoldMinutes > command.MaxHoldMinutes {
			return known, fault.Invalid(fault.InvalidRequest, "uploads",
				"at most %d heavy uploads at a time, %d seconds, and %d minutes of hold",
				command.MaxHeavyImports, command.MaxUploadSeconds, command.MaxHoldMinutes)
		}
	}
	if days := p.HistoryDays; days != nil {
		next.HistoryDays = *days
		if *days != 0 && *days < state.MinHistoryDays || *days > state.MaxHistoryDays {
			return known, fault.Invalid(fault.InvalidRequest, "historyDays",
				"must be from %d to %d, or 0 to take it back", state.MinHistoryDays, state.MaxHistoryDays)
		}
	}
	if p.Plans != nil {
		next.Plans = *p.Plans
		if err := checkPlans(next.Plans); err != nil {
			return known, err
		}
	}
	if p.Threshold != nil {
		next.Threshold = p.Threshold
		if *p.Threshold < 0 {
			next.Threshold = nil
		}
		if *p.Threshold > command.MaxThreshold {
			return known, fault.Invalid(fault.InvalidRequest, "lowBalanceThresholdMicros",
				"at most %d micros", int64(command.MaxThreshold))
		}
	}
	for _, change := range []struct {
		field string
		from  *[]state.RateFigure
		to    *[]state.RateFigure
	}{{"rates", p.Rates, &next.Rates}, {"customerRates", p.CustomerRates, &next.CustomerRates}} {
		if change.from == nil {
			continue
		}
		if err := checkFigures(change.field, *change.from); err != nil {
			return known, err
		}
		if *change.to = *change.from; len(*change.from) == 0 {
			*change.to = nil
		}
	}
	if reflect.DeepEqual(known, next) {
		return known, nil
	}
	if p.Revision != nil && *p.Revision != known.Revision {
		return known, fault.Invalid(fault.SettingsChanged, "revision",
			"the settings are of revision %d now", known.Revision)
	}
	next.Revision, next.ChangedAt, next.ChangedBy = known.Revision+1, tx.Now, p.By
	tx.PutSettings(&next)
	return next, nil
}

// checkFigures checks the bounds and the order of figures.
func checkFigures(field string, figures []state.RateFigure) error {
	if len(figures) > command.MaxRateFigures {
		return fault.Invalid(fault.InvalidRequest, field, "at most %d figures",
			command.MaxRateFigures)
	}
	for i, f := range figures {
		switch {
		case len(f.Class) == 0 || len(f.Class) > command.MaxRateClassName,
			i > 0 && figures[i-1].Class >= f.Class:
			return fault.Invalid(fault.InvalidRequest, field, "each class once, by its name")
		case f.Count < 1 || f.Count > command.MaxRateCount, f.Per < 1_000,
			f.Per > command.MaxRateMillis:
			return fault.Invalid(fault.InvalidRequest, field+"."+f.Class,
				"want 1 to %d calls in 1 s to 24 h", command.MaxRateCount)
		}
	}
	return nil
}

// seedPlans stores the first catalogue that a server brings.
func seedPlans(tx *state.Tx, p command.SeedPlansPayload) (state.Settings, error) {
	known := *tx.Settings()
	if len(known.Plans) > 0 {
		return known, nil
	}
	if err := checkPlans(p.Plans); err != nil {
		return known, err
	}
	known.Plans = p.Plans
	tx.PutSettings(&known)
	return known, nil
}

// checkPlans checks a catalogue's bounds and order. The free plan must be below all others. Only
// the callers that ask for features and limits know which exist.
func checkPlans(plans []state.Plan) error {
	if len(plans) == 0 || len(plans) > command.MaxPlans || plans[0].Name != state.StarterPlan ||
		plans[0].Cents != 0 {
		return fault.Invalid(fault.InvalidRequest, "plans", "want at most %d plans, of which %s "+
			"has the lowest level and is free", command.MaxPlans, state.StarterPlan)
	}
	named := map[string]bool{}
	for i := range plans {
		p := &plans[i]
		field := fmt.Sprintf("plans[%d]", i)
		switch {
		case !isPlanText(p.Name) || named[p.Name]:
			return fault.Invalid(fault.InvalidRequest, field+".plan", "each plan once, by its name")
		case i > 0 && plans[i-1].Level >= p.Level:
			return fault.Invalid(fault.InvalidRequest, field+".level", "each plan has its own")
		case p.Cents < 0 || p.Cents > command.MaxPlanCents:
			return fault.Invalid(fault.InvalidRequest, field+".monthlyPrice", "0 to %d cents",
				command.MaxPlanCents)
		case p.Offered && p.Cents == 0:
			return fault.Invalid(fault.InvalidRequest, field+".offered", "it costs nothing")
		case len(p.Features) > command.MaxPlanTerms ||
			slices.ContainsFunc(p.Features, func(f string) bool { return !isPlanText(f) }):
			return fault.Invalid(fault.InvalidRequest, field+".features", "at most %d names",
				command.MaxPlanTerms)
		case len(p.Limits) > command.MaxPlanTerms || !areLimits(p.Limits):
			return fault.Invalid(fault.InvalidRequest, field+".limits",
				"at most %d, each once by its name, of 0 to %d", command.MaxPlanTerms,
				command.MaxPlanLimit)
		}
		named[p.Name] = true
	}
	return nil
}

func isPlanText(name string) bool { return name != "" && len(name) <= command.MaxPlanText }

// areLimits reports whether limits are within bounds and in order.
func areLimits(limits []state.PlanLimit) bool {
	for i, l := range limits {
		if !isPlanText(l.Name) || l.Most > command.MaxPlanLimit ||
			i > 0 && limits[i-1].Name >= l.Name {
			return false
		}
	}
	return true
}
