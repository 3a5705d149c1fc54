package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/price"
)

// Bounds of a price table. All versions of it are kept: runs of all times are held against theirs.
const (
	MaxPriceLabel  = 100           // characters
	MaxPriceMicros = 1_000_000_000 // a page: 1,000 EUR
	MaxPriceBytes  = 32 << 20      // of all versions
)

// SetPricesPayload makes a new version of the price table, out of the one that an admin has seen.
// It has the same rows; which of them are on, their labels, prices and order are the admin's. Rows
// of domains come and go as the admin likes, up to price.MaxDomains. It answers the table behind
// it: one that changes nothing makes no version. Faults: invalid_request, prices_changed where
// there is a newer version, limit_reached.
type SetPricesPayload struct {
	By      string     `cbor:"1,keyasint,omitempty"` // the admin's subject
	Version uint32     `cbor:"2,keyasint"`           // that the admin has seen
	Rows    price.List `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (SetPricesPayload) Declaration() Declaration {
	return Declaration{Number: 244, By: APIServer, Kept: true, Since: state.PricesSince}
}

func (SetPricesPayload) yields(state.PriceTable) {}
