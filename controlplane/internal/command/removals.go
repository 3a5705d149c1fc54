package command

import "shoal.dev/shoal/pkg/ids"

// RemovalRef names a removal: a deleted scraper, and a group where it has rows.
type RemovalRef struct {
	Group   ids.ID `cbor:"1,keyasint"`
	Scraper ids.ID `cbor:"2,keyasint"`
}

// ForgetRemovalsPayload drops removals whose rows the row store has removed. It ignores unknown
// ones.
type ForgetRemovalsPayload struct {
	Removals []RemovalRef `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetRemovalsPayload) Declaration() Declaration {
	return Declaration{Number: 141, By: Ingest, Since: 2}
}

func (ForgetRemovalsPayload) yields(None) {}
