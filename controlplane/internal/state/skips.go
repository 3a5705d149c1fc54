package state

import "strconv"

// SkipReason says why a start did not launch a scraper (decision 52).
type SkipReason uint8

// The reasons. They are stored, so their numbers must stay.
const (
	SkipFile         SkipReason = 1 // its rows are uploaded
	SkipRunning      SkipReason = 2
	SkipNoSource     SkipReason = 3 // it has no start address, or was removed
	SkipInvalid      SkipReason = 4 // its recipe cannot run
	SkipUnaffordable SkipReason = 5
	SkipTiers        SkipReason = 6 // the server has none of the tiers it may use
	SkipLimit        SkipReason = 7 // too many runs are open
	SkipSchema       SkipReason = 8 // its schema was removed
	SkipUnreachable  SkipReason = 9
	SkipBlocked      SkipReason = 10 // an admin has blocked the customer; only for due starts
	SkipPlan         SkipReason = 11 // the plan has no schedules; only for due starts
	SkipStarting     SkipReason = 12 // the previous start is still launching; only for due starts
	SkipPaused       SkipReason = 13 // its schedule was paused; only for due starts
)

// skipNames lists the reasons' names in the API.
func skipNames() []string {
	return []string{"", "FILE", "ALREADY_RUNNING", "NO_SOURCE", "CONFIG_INVALID", "NOT_AFFORDABLE",
		"TIER_UNAVAILABLE", "LIMIT_REACHED", "SCHEMA_GONE", "START_UNREACHABLE",
		"CUSTOMER_BLOCKED", "FEATURE_NOT_IN_PLAN", "STILL_STARTING", "PAUSED"}
}

// Refusal reports whether nothing starts until somebody acts: on the balance, the plan, the recipe
// or a block.
func (r SkipReason) Refusal() bool {
	switch r {
	case SkipUnaffordable, SkipBlocked, SkipPlan, SkipInvalid, SkipSchema:
		return true
	}
	return false
}

// Outranks reports whether r is told instead of other. A reason that money resolves comes first,
// then one that somebody else must resolve, then the rest.
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

// String returns the reason's name in the API, or the number of a later version's reason.
func (r SkipReason) String() string {
	if names := skipNames(); int(r) < len(names) {
		return names[r]
	}
	return strconv.Itoa(int(r))
}
