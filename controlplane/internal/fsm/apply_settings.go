package fsm

import (
	"reflect"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// putSettings changes what operators have set. What is out keeps what is held for it, and gives it
// back when it comes back.
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
	next.Revision, next.ChangedAt, next.ChangedBy = known.Revision+1, tx.Now, p.By
	tx.PutSettings(&next)
	return next, nil
}

// checkFigures holds figures to their bounds, and to their order.
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
