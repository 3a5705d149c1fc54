package model_test

import (
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// TestPreferencesUnlessTold checks the defaults of decision 26.
func TestPreferencesUnlessTold(t *testing.T) {
	want := map[model.Event]model.NoticePreference{
		model.RunFailed: model.BothWays, model.RunCompleted: model.InApp,
		model.RunStoppedBalance: model.BothWays, model.WalletLowBalance: model.BothWays,
		model.TopUpApplied: model.InApp, model.TopUpFailed: model.BothWays,
		model.QuotaNearLimit: model.BothWays, model.MergeCompleted: model.InApp,
		model.MatchCompleted: model.InApp, model.MatchFailed: model.BothWays,
		model.GroupShared: model.InApp, model.RunAnomaly: model.BothWays,
		model.RunChanged:    model.BothWays,
		model.APIKeyCreated: model.BothWays, model.WebhookDisabled: model.BothWays,
		model.StartRefused: model.BothWays,
	}
	if len(want) != len(model.Events()) {
		t.Errorf("there are %d events", len(model.Events()))
	}
	for _, event := range model.Events() {
		if got := event.Preference(); got != want[event] {
			t.Errorf("%s is told by %s, want %s", event, got, want[event])
		}
	}
}
