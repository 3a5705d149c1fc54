// Package notices has the words that tell customers what happened. It does not know where they are
// shown: in the application or in an e-mail.
package notices

import (
	"fmt"
	"net/url"
	"strings"

	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// Title says what happened in a few words.
func Title(n *client.Notice) string {
	switch n.Event {
	case model.RunFailed:
		return fmt.Sprintf("The run of %q failed", n.Name)
	case model.RunCompleted:
		return fmt.Sprintf("The run of %q is complete", n.Name)
	case model.MergeCompleted:
		return fmt.Sprintf("The merge into %q is complete", n.Name)
	case model.MatchCompleted:
		return fmt.Sprintf("The match into %q is complete", n.Name)
	case model.MatchFailed:
		return fmt.Sprintf("The match into %q failed", n.Name)
	case model.RunStoppedBalance:
		return fmt.Sprintf("The run of %q stopped: the balance was used up", n.Name)
	case model.RunAnomaly:
		return fmt.Sprintf("The run of %q is held back", n.Name)
	case model.RunChanged:
		if n.Changes == nil {
			return fmt.Sprintf("The run of %q could not be compared", n.Name)
		}
		return fmt.Sprintf("Rows of %q have changed", n.Name)
	case model.WalletLowBalance:
		return "The balance of your wallet is low"
	case model.TopUpApplied:
		return "Your wallet was topped up"
	case model.TopUpFailed:
		return "The payment of a top-up failed"
	case model.APIKeyCreated:
		return fmt.Sprintf("The API key %q was created", n.Name)
	case model.GroupShared:
		return fmt.Sprintf("The group %q is shared with you", n.Name)
	case model.WebhookDisabled:
		return "A webhook was switched off"
	case model.StartRefused:
		return fmt.Sprintf("A scheduled start of %q was refused", n.Name)
	case model.QuotaNearLimit:
		return fmt.Sprintf("You are near your plan's limit on %s", capped(n.Name))
	case model.WebhookTest:
		return "A test of your webhook"
	case model.MoreNotices:
		return many(n.Count, "more notice")
	}
	return string(n.Event)
}

// Text says what happened in one or two sentences.
func Text(n *client.Notice) string {
	fetched := n.Pages > 0 || n.Errors > 0
	switch n.Event {
	case model.MergeCompleted, model.MatchCompleted:
		return fmt.Sprintf("It made %s.", many(n.Items, "row"))
	case model.MatchFailed:
		return fmt.Sprintf("Nothing was stored%s.", because(n.Message))
	case model.RunFailed:
		if !fetched { // a file's run
			return fmt.Sprintf("Nothing was stored%s.", because(n.Message))
		}
		return fmt.Sprintf("It read %s, and %s failed%s. It cost %s.", many(n.Pages, "page"),
			many(uint64(n.Errors), "link"), because(n.Message), Euros(n.Micros))
	case model.RunCompleted, model.RunStoppedBalance:
		if !fetched && n.Event == model.RunCompleted {
			return fmt.Sprintf("It made %s.", many(n.Items, "row"))
		}
		return fmt.Sprintf("It read %s and made %s; %s failed. It cost %s.%s",
			many(n.Pages, "page"), many(n.Items, "row"), many(uint64(n.Errors), "link"),
			Euros(n.Micros), remark(n.Message))
	case model.RunAnomaly:
		return fmt.Sprintf("It is unlike earlier runs%s. Release it to make it count.",
			because(n.Message))
	case model.RunChanged:
		return changes(n)
	case model.WalletLowBalance:
		return fmt.Sprintf("It is %s, below your threshold. Runs stop when it is used up.",
			Euros(n.Micros))
	case model.TopUpApplied:
		return fmt.Sprintf("%s was paid in.", Euros(n.Micros))
	case model.TopUpFailed:
		return fmt.Sprintf("%s was not paid in. No money has moved.", Euros(n.Micros))
	case model.APIKeyCreated:
		return "If it was not you, revoke it at once."
	case model.GroupShared:
		return "You can read its rows, categories and runs until its owner ends the share."
	case model.WebhookDisabled:
		return fmt.Sprintf("Nothing is sent to %s any more%s", n.Name, because(n.Message))
	case model.StartRefused:
		return refusal(n)
	case model.QuotaNearLimit:
		return fmt.Sprintf("You have %d, and your plan %s allows %d.", n.Count, n.Message, n.Most)
	case model.WebhookTest:
		return "Nothing has happened."
	case model.MoreNotices:
		return "They were not kept, because too many notices were unread."
	}
	return ""
}

// changes says what changed since the previous run, with some examples and the path of all changes.
func changes(n *client.Notice) string {
	if n.Changes == nil {
		return fmt.Sprintf("What changed since the previous run is not known%s.",
			because(n.Message))
	}
	text := fmt.Sprintf("Since the previous run, %s added, %d removed and %d changed.",
		manyWere(n.Changes.Added, "row"), n.Changes.Removed, n.Changes.Changed)
	for _, example := range n.Changes.Examples {
		text += "\n" + example
	}
	return text + "\nAll: " + diffPath(n)
}

// diffPath is the path of all changes of a RunChanged, "" if there is none.
func diffPath(n *client.Notice) string {
	if n.Changes == nil {
		return ""
	}
	path := fmt.Sprintf("/api/scraper/data/diff?from=%s&to=%s", n.Changes.From, n.Subject)
	for _, member := range n.Changes.Key {
		path += "&key=" + url.QueryEscape(member)
	}
	return path
}

// manyWere is many with a verb.
func manyWere(n uint64, thing string) string {
	if n == 1 {
		return many(n, thing) + " was"
	}
	return many(n, thing) + " were"
}

// capped names the things that a plan's cap counts.
func capped(name string) string {
	switch plans.Cap(name) {
	case plans.MaxScrapers:
		return "scrapers"
	case plans.MaxGroups:
		return "groups"
	case plans.DataSharingLimits:
		return "shares"
	case plans.GroupCustomCategoriesLimit:
		return "categories"
	}
	return name
}

// refusal says why a start was refused, and what helps.
func refusal(n *client.Notice) string {
	why, helps := "it could not be launched ("+n.Message+")", ""
	switch n.Message {
	case client.SkipUnaffordable.String():
		why, helps = "the wallet cannot pay for a page", "Top it up."
	case client.SkipBlocked.String():
		why, helps = "your account is blocked", "Ask the operator."
	case client.SkipPlan.String():
		why, helps = "your plan does not include scheduled starts", "Change the plan."
	case client.SkipInvalid.String():
		why, helps = "its settings are not valid", "Check its fields."
	case client.SkipSchema.String():
		why, helps = "its schema was deleted", "Choose another one."
	}
	what := "It did not start: "
	if n.Scraper.IsZero() {
		what = many(n.Count, "scraper") + " of the group did not start: "
	}
	return strings.TrimSpace(what + why + ". " + helps)
}

// many is a number of things.
func many(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// remark makes a sentence of the message of a run that completed.
func remark(message string) string {
	if message == "" {
		return ""
	}
	return " Note: " + message + "."
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// Euros formats an amount in micros: in cents, or in micros if it is not a whole number of cents.
func Euros(micros int64) string {
	sign, whole := "", uint64(micros)
	if micros < 0 {
		sign, whole = "-", -whole
	}
	euros, part := whole/price.MicrosPerEUR, whole%price.MicrosPerEUR
	if part%price.MicrosPerCent == 0 {
		return fmt.Sprintf("%s%d.%02d EUR", sign, euros, part/price.MicrosPerCent)
	}
	return fmt.Sprintf("%s%d.%06d EUR", sign, euros, part)
}
