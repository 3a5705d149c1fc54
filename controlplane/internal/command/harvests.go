package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of harvests.
const (
	MaxHarvestCap  = 500_000 // addresses of one
	MaxHarvests    = 1_000   // of a customer that are remembered
	MaxHarvestsOn  = 10      // of a customer that are under way
	HarvestKept    = 24 * 60 * 60 * 1000
	maxHarvestURL  = 8_192 // bytes of its address
	maxHarvestCall = 1_024 // bytes of what names the call
)

// AskHarvestPayload has the sitemaps of a scraper's site read, by an item of background work that
// has the same id. One whose id is there changes nothing. Operation and Key name the call. Faults:
// scraper_not_found, harvest_running, limit_reached, out_of_space, invalid_request.
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

// Fits says whether the texts of the payload are as long as they may be.
func (p *AskHarvestPayload) Fits() bool {
	return len(p.URL) <= maxHarvestURL && len(p.Operation)+len(p.Key) <= maxHarvestCall
}

// EndHarvestPayload says that a harvest has ended, all that it found being in the row store. Or
// nothing could be read: Code is not "". The first word stands. A failure frees the key of the call
// that asked, so that the same call may ask again. One that there is not changes nothing.
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

// ForgetHarvestsPayload says that the row store has nothing of some harvests any more. Those whose
// call may come again are remembered for HarvestKept after their end, by their count alone. It is
// told of them once more then. One that there is not changes nothing.
type ForgetHarvestsPayload struct {
	Harvests []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetHarvestsPayload) Declaration() Declaration {
	return Declaration{Number: 219, By: Ingest, Since: state.HarvestsSince}
}

func (ForgetHarvestsPayload) yields(None) {}
