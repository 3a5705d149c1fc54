package webhooks

import (
	"encoding/json"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// message is the body of a request. Members are added; none changes its meaning.
type message struct {
	Type      model.Event `json:"type"`
	Timestamp string      `json:"timestamp"` // when it happened, not when it is sent
	Data      data        `json:"data"`
}

// data is what happened. Of the last nine members it has the one that the event is about.
type data struct {
	ID            ids.ID   `json:"id"` // of the notification, and the header webhook-id
	Title         string   `json:"title"`
	Text          string   `json:"text"`
	Run           *run     `json:"run,omitempty"`
	Key           *key     `json:"key,omitempty"`
	TopUp         *topUp   `json:"topUp,omitempty"`
	Group         *group   `json:"group,omitempty"`
	Webhook       *webhook `json:"webhook,omitempty"`
	Start         *start   `json:"start,omitempty"`
	Quota         *quota   `json:"quota,omitempty"`
	Changes       *changes `json:"changes,omitempty"`
	BalanceMicros *int64   `json:"balanceMicros,omitempty"`
}

// changes is what changed up to a run, or why that is not known.
type changes struct {
	JobID        ids.ID   `json:"jobId"`
	ScraperID    ids.ID   `json:"scraperId"`
	ScraperName  string   `json:"scraperName"`
	FromJobID    *ids.ID  `json:"fromJobId,omitempty"` // the run before
	Added        uint64   `json:"added"`
	Removed      uint64   `json:"removed"`
	Changed      uint64   `json:"changed"`
	Examples     []string `json:"examples,omitempty"`
	Diff         string   `json:"diff,omitempty"` // where all of it is read
	ErrorMessage string   `json:"errorMessage,omitempty"`
}

func newChanges(n *client.Notice) *changes {
	told := &changes{JobID: n.Subject, ScraperID: n.Scraper, ScraperName: n.Name,
		ErrorMessage: n.Message, Diff: notices.DiffPath(n)}
	if c := n.Changes; c != nil {
		told.FromJobID, told.Examples = &c.From, c.Examples
		told.Added, told.Removed, told.Changed = c.Added, c.Removed, c.Changed
	}
	return told
}

type run struct {
	JobID         ids.ID `json:"jobId"`
	ScraperID     ids.ID `json:"scraperId"`
	ScraperName   string `json:"scraperName"`
	ErrorMessage  string `json:"errorMessage,omitempty"`
	Pages         uint64 `json:"pages"`
	Rows          uint64 `json:"rows"`
	ErrorLinks    uint32 `json:"errorLinks"`
	ChargedMicros int64  `json:"chargedMicros"`
}

type key struct {
	ID   ids.ID `json:"id"`
	Name string `json:"name"`
}

type group struct {
	ID   ids.ID `json:"id"`
	Name string `json:"name"`
}

// start is a start by schedule that was refused, of a scraper or a group.
type start struct {
	ScraperID *ids.ID `json:"scraperId,omitempty"`
	GroupID   *ids.ID `json:"groupId,omitempty"`
	Name      string  `json:"name"`
	Reason    string  `json:"reason"`
	Skipped   uint64  `json:"skipped"` // scrapers
}

// quota is how much of what a plan allows is used.
type quota struct {
	Limit string `json:"limit"` // the name of the plan's cap
	Plan  string `json:"plan"`
	Used  uint64 `json:"used"`
	Most  uint64 `json:"most"`
}

type topUp struct {
	TransactionID *ids.ID `json:"transactionId,omitempty"` // of a paid one
	AmountMicros  int64   `json:"amountMicros"`
}

type webhook struct {
	ID  ids.ID `json:"id"`
	URL string `json:"url"`
}

// newMessage tells of a notice.
func newMessage(n *client.Notice) ([]byte, error) {
	told := message{Type: n.Event,
		Timestamp: time.UnixMilli(n.At).UTC().Format("2006-01-02T15:04:05.000Z"),
		Data:      data{ID: n.ID, Title: notices.Title(n), Text: notices.Text(n)}}
	switch n.Event {
	case model.RunFailed, model.RunCompleted, model.RunStoppedBalance, model.RunAnomaly:
		told.Data.Run = &run{JobID: n.Subject, ScraperID: n.Scraper, ScraperName: n.Name,
			ErrorMessage: n.Message, Pages: n.Pages, Rows: n.Items, ErrorLinks: n.Errors,
			ChargedMicros: n.Micros}
	case model.RunChanged:
		told.Data.Changes = newChanges(n)
	case model.APIKeyCreated:
		told.Data.Key = &key{ID: n.Subject, Name: n.Name}
	case model.GroupShared:
		told.Data.Group = &group{ID: n.Subject, Name: n.Name}
	case model.WalletLowBalance:
		told.Data.BalanceMicros = &n.Micros
	case model.TopUpApplied:
		told.Data.TopUp = &topUp{TransactionID: &n.Subject, AmountMicros: n.Micros}
	case model.TopUpFailed:
		told.Data.TopUp = &topUp{AmountMicros: n.Micros}
	case model.StartRefused:
		told.Data.Start = &start{Name: n.Name, Reason: n.Message, Skipped: n.Count}
		if n.Scraper.IsZero() {
			told.Data.Start.GroupID = &n.Subject
		} else {
			told.Data.Start.ScraperID = &n.Scraper
		}
	case model.QuotaNearLimit:
		told.Data.Quota = &quota{Limit: n.Name, Plan: n.Message, Used: n.Count, Most: n.Most}
	case model.WebhookDisabled, model.WebhookTest:
		told.Data.Webhook = &webhook{ID: n.Subject, URL: n.Name}
	}
	body, err := json.Marshal(told)
	if err != nil {
		return nil, fmt.Errorf("apiserver: encode the message of a webhook: %w", err)
	}
	return body, nil
}
