package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// PutCategoryPayload saves a filter of a customer's group under a name. It replaces the category
// with that name, which keeps its id; a new one gets ID. Faults: not_found (the group is not the
// customer's), limit_reached (100 categories a group, 1,000 a customer), plan_limit_reached.
type PutCategoryPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Group    ids.ID `cbor:"3,keyasint"`
	Name     string `cbor:"4,keyasint"`
	// Filters is compact JSON that pkg/filter has parsed.
	Filters []byte `cbor:"5,keyasint"`
	// Cap bounds the customer's categories by its plan; nil: only the general limit.
	Cap *PlanCap `cbor:"6,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutCategoryPayload) Declaration() Declaration {
	return Declaration{Number: 190, By: APIServer, Kept: true, Since: state.CategoriesSince}
}

func (PutCategoryPayload) yields(state.Category) {}

// OpDeleteCategory has a preview, like the other Op constants. Its query is the group's id.
const OpDeleteCategory = "svc_delete_category"

// DeleteCategoryPayload removes a category of a customer's group; rows stay. Token is the
// preview's, "" accepts any. Faults: not_found, PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT.
type DeleteCategoryPayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DeleteCategoryPayload) Declaration() Declaration {
	return Declaration{Number: 191, By: APIServer, Kept: true, Since: state.CategoriesSince}
}

func (DeleteCategoryPayload) yields(None) {}
