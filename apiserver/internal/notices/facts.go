package notices

import (
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// NotificationFacts are the data behind the words of a notice, in the member for the event. Clients
// use them to show a notice in another language or number format.
type NotificationFacts struct {
	Run           *NotifiedRun     `json:"run,omitempty"`
	Key           *NotifiedKey     `json:"key,omitempty"`
	TopUp         *NotifiedTopUp   `json:"topUp,omitempty"`
	Group         *NotifiedGroup   `json:"group,omitempty"`
	Webhook       *NotifiedWebhook `json:"webhook,omitempty"`
	Start         *NotifiedStart   `json:"start,omitempty"`
	Quota         *NotifiedQuota   `json:"quota,omitempty"`
	Changes       *NotifiedChanges `json:"changes,omitempty"`
	BalanceMicros *int64           `json:"balanceMicros,omitempty" doc:"Micros, millionths of a euro"`
}

// NotifiedRun is a run that has ended.
type NotifiedRun struct {
	JobID         ids.ID `json:"jobId"`
	ScraperID     ids.ID `json:"scraperId"`
	ScraperName   string `json:"scraperName" doc:"For a merge or a match: the name of the resulting group"`
	ErrorMessage  string `json:"errorMessage,omitempty" scraped:"-" doc:"Why the run failed, is held back or was not checked"`
	Pages         uint64 `json:"pages"`
	Rows          uint64 `json:"rows"`
	ErrorLinks    uint32 `json:"errorLinks"`
	ChargedMicros int64  `json:"chargedMicros" doc:"Micros, millionths of a euro"`
}

// NotifiedKey is an API key.
type NotifiedKey struct {
	ID   ids.ID `json:"id"`
	Name string `json:"name"`
}

// NotifiedGroup is a group of somebody else.
type NotifiedGroup struct {
	ID   ids.ID `json:"id"`
	Name string `json:"name"`
}

// NotifiedStart is a scheduled start of a scraper or a group that was refused.
type NotifiedStart struct {
	ScraperID *ids.ID `json:"scraperId,omitempty"`
	GroupID   *ids.ID `json:"groupId,omitempty"`
	Name      string  `json:"name"`
	Reason    string  `json:"reason"`
	Skipped   uint64  `json:"skipped" doc:"How many scrapers did not start"`
}

// NotifiedQuota is how much of a plan's limit is used.
type NotifiedQuota struct {
	Limit string `json:"limit" doc:"The name of the plan's limit"`
	Plan  string `json:"plan"`
	Used  uint64 `json:"used"`
	Most  uint64 `json:"most"`
}

// NotifiedTopUp is a top-up that was paid, or not.
type NotifiedTopUp struct {
	TransactionID *ids.ID `json:"transactionId,omitempty" doc:"Transaction of a paid top-up"`
	AmountMicros  int64   `json:"amountMicros" doc:"Micros, millionths of a euro"`
}

// NotifiedWebhook is a webhook that was switched off or is being tested.
type NotifiedWebhook struct {
	ID     ids.ID `json:"id"`
	URL    string `json:"url"`
	Reason string `json:"reason,omitempty" doc:"Why it was switched off"`
}

// NotifiedChanges is what changed in a run, or why that is unknown.
type NotifiedChanges struct {
	JobID        ids.ID   `json:"jobId"`
	ScraperID    ids.ID   `json:"scraperId"`
	ScraperName  string   `json:"scraperName"`
	FromJobID    *ids.ID  `json:"fromJobId,omitempty" doc:"The previous run; absent if the runs were not compared"`
	Added        uint64   `json:"added"`
	Removed      uint64   `json:"removed"`
	Changed      uint64   `json:"changed"`
	Examples     []string `json:"examples,omitempty" scraped:"diff" doc:"Some of the changes, in a few words each"`
	Diff         string   `json:"diff,omitempty" doc:"Address at which all changes can be read"`
	ErrorMessage string   `json:"errorMessage,omitempty" doc:"Why the runs were not compared"`
}

// FactsOf returns the facts of a notice.
func FactsOf(n *client.Notice) (f NotificationFacts) {
	switch n.Event {
	case model.RunFailed, model.RunCompleted, model.RunStoppedBalance, model.RunAnomaly,
		model.MergeCompleted, model.MatchCompleted, model.MatchFailed:
		f.Run = &NotifiedRun{JobID: n.Subject, ScraperID: n.Scraper, ScraperName: n.Name,
			ErrorMessage: n.Message, Pages: n.Pages, Rows: n.Items, ErrorLinks: n.Errors,
			ChargedMicros: n.Micros}
	case model.RunChanged:
		f.Changes = newChanges(n)
	case model.APIKeyCreated:
		f.Key = &NotifiedKey{ID: n.Subject, Name: n.Name}
	case model.GroupShared:
		f.Group = &NotifiedGroup{ID: n.Subject, Name: n.Name}
	case model.WalletLowBalance:
		f.BalanceMicros = &n.Micros
	case model.TopUpApplied:
		f.TopUp = &NotifiedTopUp{TransactionID: &n.Subject, AmountMicros: n.Micros}
	case model.TopUpFailed:
		f.TopUp = &NotifiedTopUp{AmountMicros: n.Micros}
	case model.StartRefused:
		f.Start = &NotifiedStart{Name: n.Name, Reason: n.Message, Skipped: n.Count}
		if n.Scraper.IsZero() {
			f.Start.GroupID = &n.Subject
		} else {
			f.Start.ScraperID = &n.Scraper
		}
	case model.QuotaNearLimit:
		f.Quota = &NotifiedQuota{Limit: n.Name, Plan: n.Message, Used: n.Count, Most: n.Most}
	case model.WebhookDisabled, model.WebhookTest:
		f.Webhook = &NotifiedWebhook{ID: n.Subject, URL: n.Name, Reason: n.Message}
	}
	return f
}

func newChanges(n *client.Notice) *NotifiedChanges {
	told := &NotifiedChanges{JobID: n.Subject, ScraperID: n.Scraper, ScraperName: n.Name,
		ErrorMessage: n.Message, Diff: diffPath(n)}
	if c := n.Changes; c != nil {
		told.FromJobID, told.Examples = &c.From, c.Examples
		told.Added, told.Removed, told.Changed = c.Added, c.Removed, c.Changed
	}
	return told
}
