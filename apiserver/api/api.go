// Package api owns what the operations of all resources share: the services that their handlers
// use, and the forms of times and page envelopes. Each resource has a folder of its own here, with
// one file and one test per operation.
package api

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rules/ecb"
)

// Services is what handlers work with.
type Services struct {
	Client  client.Client
	Store   rowstore.Store
	Clock   clock.Clock
	IDs     ids.Source
	Touches *auth.Touches
	// Node and Boot name this process in claims of idempotency keys.
	Node string
	Boot ids.ID
	// Lag is how many records each topic still holds, by its name.
	Lag func(ctx context.Context) map[string]int64
	// Recount holds the ledger of every closed run in a view against its page records.
	Recount func(ctx context.Context, view *client.View) iter.Seq2[Recounted, error]
	// Operator is what administrators do to the cluster.
	Operator client.Operator
	// Guard says which addresses may be crawled.
	Guard Guard
	// Values keeps what may be lost, samples for an hour.
	Values cache.Values
	// Engines are the search engines that the operator has configured, the default first.
	Engines []model.SearchEngine
	// ExchangeRates are what currency rules convert by.
	ExchangeRates ecb.Rates
	// Ceilings are the most that a scraper may ask of its hosts.
	Ceilings Ceilings
}

// Recounted is one run's ledger entry and what its page records say. Money is in micros, 0 or more.
type Recounted struct {
	JobID         ids.ID `json:"jobId"`
	CustomerRef   string `json:"customerRef"`
	EntryID       ids.ID `json:"entryId"`
	LedgerMicros  int64  `json:"ledgerMicros"`
	RecountMicros int64  `json:"recountMicros"`
	LedgerPages   uint64 `json:"ledgerPages" doc:"Charged or paid by free requests"`
	RecountPages  uint64 `json:"recountPages" doc:"Delivered"`
	LedgerItems   uint64 `json:"ledgerItems"`
	RecountItems  uint64 `json:"recountItems"`
	Equal         bool   `json:"equal"`
	Undone        bool   `json:"undone,omitempty" doc:"A restore undid the run: it is in no ledger, and nobody reads what is stored of it"`
}

// Guard is the address check of everything that goes out (egress.Client).
type Guard interface {
	// CheckURL says without DNS whether an address can be crawled at all. Its error has the code
	// INVALID_URL.
	CheckURL(url string) error
	// CheckHost resolves a host (without port) and says whether it may be reached. Its errors have
	// page codes.
	CheckHost(ctx context.Context, host string) error
}

// Ceilings bound the politeness that scrapers ask for (decision 17).
type Ceilings struct {
	RequestsPerSecond float64
	Connections       int
}

// Time is Unix milliseconds, written as ISO 8601 in UTC; 0 is null.
type Time int64

// MarshalJSON writes three digits of the second's fraction.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(time.UnixMilli(int64(t)).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(data []byte) error {
	var at *time.Time
	if err := json.Unmarshal(data, &at); err != nil {
		return err
	}
	*t = 0
	if at != nil {
		*t = Time(at.UnixMilli())
	}
	return nil
}

// Schema describes a Time in the OpenAPI document.
func (Time) Schema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "null"}, Format: "date-time"}
}
