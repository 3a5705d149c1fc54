package state

import "strconv"

// SkipReason says why a scraper was not launched with its group (decision 52).
type SkipReason uint8

// The reasons. They are stored, so their numbers stay.
const (
	SkipFile         SkipReason = 1 // its rows are uploaded
	SkipRunning      SkipReason = 2
	SkipNoSource     SkipReason = 3 // it has no address to begin at, or is not there any more
	SkipInvalid      SkipReason = 4 // its recipe cannot run
	SkipUnaffordable SkipReason = 5
	SkipTiers        SkipReason = 6 // the server has none of the tiers that it may use
	SkipLimit        SkipReason = 7 // too many runs are open
	SkipSchema       SkipReason = 8 // its schema is not there any more
	SkipUnreachable  SkipReason = 9
	SkipBlocked      SkipReason = 10 // an admin has blocked the customer; of due starts alone
	SkipPlan         SkipReason = 11 // the customer's plan does not start by itself; so, too
	SkipStarting     SkipReason = 12 // what the start before it launches is under way; so, too
	SkipPaused       SkipReason = 13 // it does not start by itself any more; so, too
)

// skipNames are the reasons as people see them.
func skipNames() []string {
	return []string{"", "FILE", "ALREADY_RUNNING", "NO_SOURCE", "CONFIG_INVALID", "NOT_AFFORDABLE",
		"TIER_UNAVAILABLE", "LIMIT_REACHED", "SCHEMA_GONE", "START_UNREACHABLE",
		"CUSTOMER_BLOCKED", "FEATURE_NOT_IN_PLAN", "STILL_STARTING", "PAUSED"}
}

// Refusal says whether nothing starts until somebody mends it: the balance, the plan or the recipe,
// or an admin, stands in the way.
func (r SkipReason) Refusal() bool {
	switch r {
	case SkipUnaffordable, SkipBlocked, SkipPlan, SkipInvalid, SkipSchema:
		return true
	}
	return false
}

// Outranks says whether of two reasons this one is told, and the other one is not. What money mends
// goes before what somebody else mends, and that before what nobody has to.
func (r SkipReason) Outranks(other SkipReason) bool { return r.rank() > other.rank() }

func (r SkipReason) rank() int {
	switch {
	case r == SkipUnaffordable:
		return 3
	case r.Refusal():
		return 2
	case r != 0:
		return 1
	}
	return 0
}

// String is the reason as people see it; one of a later version is its number.
func (r SkipReason) String() string {
	if names := skipNames(); int(r) < len(names) {
		return names[r]
	}
	return strconv.Itoa(int(r))
}
