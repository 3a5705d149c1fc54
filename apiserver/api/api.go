// Package api owns what the operations of all resources share: the services that their handlers
// use, and the forms of times and page envelopes. Each resource has a folder of its own here, with
// one file and one test per operation.
package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Services is what handlers work with.
type Services struct {
	Client client.Client
	Store  rowstore.Store
	Clock  clock.Clock
	IDs    ids.Source
	// Node and Boot name this process in claims of idempotency keys.
	Node string
	Boot ids.ID
	// Guard says which addresses may be crawled.
	Guard Guard
	// Values keeps what may be lost, samples for an hour.
	Values cache.Values
	// Engines are the search engines that the operator has configured, the default first.
	Engines []model.SearchEngine
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
