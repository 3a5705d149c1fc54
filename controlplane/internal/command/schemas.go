package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// PutSchemaPayload replaces the schema Known if it is the customer's, or a global one if Customer
// is "". Otherwise it makes a new one with ID. Type and version also identify a global one. Faults:
// limit_reached (200 schemas a customer, 1,000 global ones), schema_validation_failed when another
// global schema has the type and version.
type PutSchemaPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Known    ids.ID `cbor:"2,keyasint,omitempty"`
	Customer string `cbor:"3,keyasint,omitempty"`
	Name     string `cbor:"4,keyasint,omitempty"`
	Version  int64  `cbor:"5,keyasint"`
	Type     string `cbor:"6,keyasint"`
	// a JSON Schema document that pkg/schema has compiled
	Content        []byte   `cbor:"7,keyasint"`
	Description    string   `cbor:"8,keyasint,omitempty"`
	TemplateID     string   `cbor:"9,keyasint,omitempty"`
	TemplateName   string   `cbor:"10,keyasint,omitempty"`
	DomainPatterns []string `cbor:"11,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutSchemaPayload) Declaration() Declaration {
	return Declaration{Number: 60, By: APIServer, Kept: true}
}

func (PutSchemaPayload) yields(state.Schema) {}

// Deletion describes a destructive call, in the same way in its preview and its commit
// (specification 4.10).
type Deletion struct {
	Customer  string `cbor:"1,keyasint"`
	Operation string `cbor:"2,keyasint"` // id of the operation that commits
	Target    ids.ID `cbor:"3,keyasint"`
	// the part of the query that changes the effect, normalized
	Query string `cbor:"4,keyasint,omitempty"`
	// Rows is how many rows of closed runs the target has, as the proposer counted them.
	Rows int64 `cbor:"5,keyasint,omitempty" since:"2"`
	// Run describes a target that is a run; nil: it is another.
	Run *DeletedRun `cbor:"6,keyasint,omitempty" since:"2"`
}

// WithData is the query of a deletion that also removes the rows.
const WithData = "withData=true"

// Operations that have a preview. The counts of each cascade are in fsm.
const (
	OpDeleteSchema  = "svc_delete_customer_schema"
	OpDeleteScraper = "svc_delete_scraper"
	OpDeleteRun     = "svc_delete_run_data"
	OpDeleteGroup   = "svc_delete_group"
	// OpRemoveCustomer targets the customer itself.
	OpRemoveCustomer = "svc_admin_remove_customer"
)

// PreviewDeletePayload records that the customer was shown what a deletion does. Its token permits
// the deletion once, within 5 minutes, unless the target's cascade changes. Faults: those of the
// deletion for a missing target.
type PreviewDeletePayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint"` // random
}

// Declaration implements Payload.
func (PreviewDeletePayload) Declaration() Declaration {
	return Declaration{Number: 62, By: APIServer, Kept: true}
}

func (PreviewDeletePayload) yields(state.Preview) {}

// DeleteSchemaPayload removes a customer's schema. Scrapers that refer to it stay, and fail at
// their next run. Token is the preview's, "" accepts any valid preview. Faults: schema_not_found,
// PREVIEW_REQUIRED, CASCADE_COUNT_DRIFT.
type DeleteSchemaPayload struct {
	Deletion Deletion `cbor:"1,keyasint"`
	Token    string   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DeleteSchemaPayload) Declaration() Declaration {
	return Declaration{Number: 61, By: APIServer, Kept: true}
}

func (DeleteSchemaPayload) yields(None) {}
