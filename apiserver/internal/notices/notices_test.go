package notices_test

import (
	"math"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

func TestEuros(t *testing.T) {
	for micros, want := range map[int64]string{0: "0.00 EUR", 5_000_000: "5.00 EUR",
		1_230_000: "1.23 EUR", -10_000: "-0.01 EUR", 1: "0.000001 EUR",
		-1_000_500: "-1.000500 EUR", math.MinInt64: "-9223372036854.775808 EUR"} {
		if got := notices.Euros(micros); got != want {
			t.Errorf("%d micros are %q, want %q", micros, got, want)
		}
	}
}

// TestRefusals: each reason of a refusal has its own words.
func TestRefusals(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range []client.SkipReason{client.SkipUnaffordable, client.SkipBlocked,
		client.SkipPlan, client.SkipInvalid, client.SkipSchema} {
		text := notices.Text(&client.Notice{Event: model.StartRefused, Message: reason.String(),
			Count: 1})
		if strings.Contains(text, "_") || !strings.HasPrefix(text, "1 scraper of") || seen[text] {
			t.Errorf("%s: %q", reason, text)
		}
		seen[text] = true
	}
}

// TestWhatIsToldHasWords: every event that can happen has a title and a text.
func TestWhatIsToldHasWords(t *testing.T) {
	for _, event := range []model.Event{model.RunFailed, model.RunCompleted,
		model.RunStoppedBalance, model.RunAnomaly, model.RunChanged,
		model.WalletLowBalance, model.TopUpApplied,
		model.TopUpFailed, model.APIKeyCreated, model.StartRefused, model.WebhookDisabled,
		model.QuotaNearLimit, model.WebhookTest, model.MoreNotices} {
		n := &client.Notice{Event: event, Name: "Shop"}
		if title := notices.Title(n); strings.Contains(title, "_") || notices.Text(n) == "" {
			t.Errorf("%s: %q, %q", event, title, notices.Text(n))
		}
	}
}

// TestCompletedRunsMayHaveARemark behind what is told of every run.
func TestCompletedRunsMayHaveARemark(t *testing.T) {
	n := &client.Notice{Event: model.RunCompleted, Name: "Shop", Pages: 2, Items: 3}
	plain := notices.Text(n)
	n.Message = "it was not compared"
	if text := notices.Text(n); text != plain+" Note: it was not compared." {
		t.Errorf("%q, and %q without", text, plain)
	}
}

// TestCapsHaveWords: each cap of a plan says what it counts.
func TestCapsHaveWords(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range plans.Caps() {
		n := &client.Notice{Event: model.QuotaNearLimit, Name: string(name), Message: "PRO",
			Count: 8, Most: 10}
		title := notices.Title(n)
		if strings.Contains(title, "_") || seen[title] ||
			notices.Text(n) != "You have 8, and your plan PRO allows 10." {
			t.Errorf("%s: %q, %q", name, title, notices.Text(n))
		}
		seen[title] = true
	}
}
