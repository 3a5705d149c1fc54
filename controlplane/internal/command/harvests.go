package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of harvests.
const (
	MaxHarvestCap  = 500_000 // addresses per harvest
	MaxHarvests    = 1_000   // kept per customer
	MaxHarvestsOn  = 10      // under way per customer
	HarvestKept    = 24 * 60 * 60 * 1000
	maxHarvestURL  = 8_192 // bytes of the start address
	maxHarvestCall = 1_024 // bytes of the call's operation and key
)

// AskHarvestPayload makes background work of the same id read the sitemaps of a scraper's site. If
// the id exists, nothing changes. Operation and Key name the call. Faults: scraper_not_found,
// harvest_running, limit_reached, out_of_space, invalid_request.
type AskHarvestPayload struct {
	ID           ids.ID `cbor:"1,keyasint"`
	Customer     string `cbor:"2,keyasint"`
	Scraper      ids.ID `cbor:"3,keyasint"`
	URL          string `cbor:"4,keyasint"`
	Cap          uint32 `cbor:"5,keyasint"`
	IgnoreRobots bool   `cbor:"6,keyasint,omitempty"`
	Operation    string `cbor:"7,keyasint,omitempty"`
	Key          string `cbor:"8,keyasint,omitempty"`
}

// Declaration implements Payload.
func (AskHarvestPayload) Declaration() Declaration {
	return Declaration{Number: 217, By: APIServer, Kept: true, Since: state.HarvestsSince}
}

func (AskHarvestPayload) yields(state.Harvest) {}

// Fits reports whether the payload's texts are within their bounds.
func (p *AskHarvestPayload) Fits() bool {
	return len(p.URL) <= maxHarvestURL && len(p.Operation)+len(p.Key) <= maxHarvestCall
}

// EndHarvestPayload says that a harvest has ended and everything it found is in the row store, or,
// with a Code, that nothing could be read. The first outcome stands. A failure frees the call's
// key, so that the call may be repeated. An unknown harvest is ignored.
type EndHarvestPayload struct {
	ID     ids.ID `cbor:"1,keyasint"`
	Count  uint32 `cbor:"2,keyasint,omitempty"`
	Code   string `cbor:"3,keyasint,omitempty"`
	Detail string `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EndHarvestPayload) Declaration() Declaration {
	return Declaration{Number: 218, By: APIServer, Since: state.HarvestsSince}
}

func (EndHarvestPayload) yields(None) {}

// ForgetHarvestsPayload says that the row store has wiped some harvests. A harvest whose call may
// be repeated is kept for HarvestKept after its end, with only its count. Then it must be reported
// once more. Unknown harvests are ignored.
type ForgetHarvestsPayload struct {
	Harvests []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetHarvestsPayload) Declaration() Declaration {
	return Declaration{Number: 219, By: Ingest, Since: state.HarvestsSince}
}

func (ForgetHarvestsPayload) yields(None) {}
