package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/price"
)

// Bounds of a price table. All versions are kept, since runs are checked against theirs.
const (
	MaxPriceLabel  = 100           // characters
	MaxPriceMicros = 1_000_000_000 // per page: 1,000 EUR
	MaxPriceBytes  = 32 << 20      // of all versions
)

// SetPricesPayload makes a new version of the price table from the version that an admin has seen.
// It has the same rows. The admin sets whether they are on, their labels, prices and order. Rows of
// domains may be added and removed, up to price.MaxDomains. It answers the table afterwards;
// without a change there is no new version. Faults: invalid_request, prices_changed where there is
// a newer version, limit_reached.
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
