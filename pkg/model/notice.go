package model

import "slices"

// Event is something that a customer is notified of (decision 26).
type Event string

// The events. MoreNotices replaces notices that found no room. It has no preference, and neither
// has WebhookTest, which goes to the webhook under test.
const (
	RunFailed         Event = "SCRAPER_RUN_FAILED"
	RunCompleted      Event = "SCRAPER_RUN_COMPLETED"
	RunStoppedBalance Event = "SCRAPER_RUN_STOPPED_BALANCE"
	WalletLowBalance  Event = "WALLET_LOW_BALANCE"
	TopUpApplied      Event = "TOPUP_APPLIED"
	TopUpFailed       Event = "TOPUP_FAILED"
	QuotaNearLimit    Event = "QUOTA_NEAR_LIMIT"
	MergeCompleted    Event = "MERGE_COMPLETED"
	MatchCompleted    Event = "MATCH_COMPLETED"
	MatchFailed       Event = "MATCH_FAILED"
	GroupShared       Event = "GROUP_SHARED"
	RunAnomaly        Event = "RUN_ANOMALY"
	RunChanged        Event = "RUN_CHANGED"
	APIKeyCreated     Event = "API_KEY_CREATED"
	WebhookDisabled   Event = "WEBHOOK_DISABLED"
	StartRefused      Event = "SCHEDULED_START_REFUSED"

	MoreNotices Event = "MORE_NOTICES"
	WebhookTest Event = "WEBHOOK_TEST"
)

// Events returns all events that have a preference, in the order of decision 26.
func Events() []Event {
	return []Event{RunFailed, RunCompleted, RunStoppedBalance, WalletLowBalance, TopUpApplied,
		TopUpFailed, QuotaNearLimit, MergeCompleted, MatchCompleted, MatchFailed, GroupShared,
		RunAnomaly, RunChanged, APIKeyCreated, WebhookDisabled, StartRefused}
}

// NoticePreference is how a customer wants to be notified of an event.
type NoticePreference string

// The preferences.
const (
	ByEmail  NoticePreference = "EMAIL"
	InApp    NoticePreference = "IN_APP"
	BothWays NoticePreference = "BOTH"
	NotAtAll NoticePreference = "NONE"
)

// Values returns the identifiers of all events that customers may name.
func (Event) Values() []string { return texts(Events()) }

// Values returns all preferences.
func (NoticePreference) Values() []string { return texts(NoticePreferences()) }

func texts[T ~string](list []T) []string {
	made := make([]string, len(list))
	for i, one := range list {
		made[i] = string(one)
	}
	return made
}

// NoticePreferences returns all preferences.
func NoticePreferences() []NoticePreference {
	return []NoticePreference{ByEmail, InApp, BothWays, NotAtAll}
}

// Preference returns the default for an event. Failures, balance, security and explicit requests
// are told both ways, the rest in the application.
func (e Event) Preference() NoticePreference {
	if slices.Contains([]Event{RunFailed, RunStoppedBalance, WalletLowBalance, TopUpFailed,
		QuotaNearLimit, MatchFailed, RunAnomaly, RunChanged, APIKeyCreated, WebhookDisabled,
		StartRefused}, e) {
		return BothWays
	}
	return InApp
}
