package wallet

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Transaction is the public form of a ledger entry.
type Transaction struct {
	ID                 ids.ID            `json:"id"`
	Type               string            `json:"type" enum:"TOPUP,CHARGE,ADJUSTMENT,FREE_GRANT"`
	Status             string            `json:"status" enum:"OPEN,SETTLED,APPLIED,EXPIRED,FAILED,UNMATCHED"`
	AmountMicros       int64             `json:"amountMicros" doc:"Micros, millionths of a euro"`
	FreeRequestsDelta  int64             `json:"freeRequestsDelta"`
	BalanceAfterMicros *int64            `json:"balanceAfterMicros" doc:"Micros, millionths of a euro; null while the entry is OPEN"`
	Source             *model.Source     `json:"source" doc:"RUN, SAMPLE, PREVIEW_URL, PREVIEW_CURL or null"`
	JobID              *ids.ID           `json:"jobId"`
	ScraperID          *ids.ID           `json:"scraperId"`
	GroupID            *ids.ID           `json:"groupId"`
	Lines              []TransactionLine `json:"lines"`
	CreatedAt          api.Time          `json:"createdAt"`
	SettledAt          api.Time          `json:"settledAt"`
}

// TransactionLine is the total at one price within a transaction.
type TransactionLine struct {
	Label           string `json:"label"`
	Pages           uint64 `json:"pages" doc:"Pages charged"`
	FreePages       uint64 `json:"freePages" doc:"Pages paid by free requests"`
	UnbilledPages   uint64 `json:"unbilledPages" doc:"Pages delivered while billing was off: they are free"`
	UnitPriceMicros int64  `json:"unitPriceMicros" doc:"Micros, millionths of a euro"`
	AmountMicros    int64  `json:"amountMicros" doc:"Micros, millionths of a euro; 0 or below"`
}

// NewTransaction converts an entry to the API's form.
func NewTransaction(e *client.Entry) Transaction {
	t := Transaction{ID: e.ID, Type: e.Type, Status: e.Status, AmountMicros: e.Amount,
		FreeRequestsDelta: e.FreeDelta,
		JobID:             reference(e.Job), ScraperID: reference(e.Scraper),
		GroupID:   reference(e.Group),
		Lines:     []TransactionLine{},
		CreatedAt: api.Time(e.CreatedAt), SettledAt: api.Time(e.SettledAt)}
	if e.Sequence > 0 { // sealed
		after := e.BalanceAfter
		t.BalanceAfterMicros = &after
	}
	if e.Source != "" {
		source := e.Source
		t.Source = &source
	}
	for _, l := range e.Lines {
		t.Lines = append(t.Lines, TransactionLine{Label: l.Label, Pages: l.Pages,
			FreePages: l.FreePages, UnbilledPages: l.Unbilled,
			UnitPriceMicros: l.UnitPrice, AmountMicros: l.Amount})
	}
	return t
}

func reference(id ids.ID) *ids.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}
