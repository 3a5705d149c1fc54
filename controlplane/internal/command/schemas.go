package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// PutSchemaPayload replaces the schema Known if it is the customer's, a global one if Customer is
// "". Otherwise it makes a new one under ID. Type and version name a global one as well. Faults:
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

// Deletion is what a destructive call is about: the same in its preview and in its commit
// (specification 4.10).
type Deletion struct {
	Customer  string `cbor:"1,keyasint"`
	Operation string `cbor:"2,keyasint"` // id of the operation that commits
	Target    ids.ID `cbor:"3,keyasint"`
	// what of the query changes the effect, in one spelling
	Query string `cbor:"4,keyasint,omitempty"`
	// Rows is how many rows hang on the target, as whoever asks counted them: those of runs that
	// are closed.
	Rows int64 `cbor:"5,keyasint,omitempty" since:"2"`
	// Run is of a target that is a run; nil: it is none.
	Run *DeletedRun `cbor:"6,keyasint,omitempty" since:"2"`
}

// WithData is the query of a deletion that takes the rows, too.
const WithData = "withData=true"

// Operations that have a preview. Each has its dependants in fsm.
const (
	OpDeleteSchema  = "svc_delete_customer_schema"
	OpDeleteScraper = "svc_delete_scraper"
	OpDeleteRun     = "svc_delete_run_data"
	OpDeleteGroup   = "svc_delete_group"
	// OpRemoveCustomer is of the customer itself: it has no other target.
	OpRemoveCustomer = "svc_admin_remove_customer"
)

// PreviewDeletePayload notes that the customer has been shown what a deletion does. Its token lets
// the deletion through once, within 5 minutes, as long as nothing that hangs on the target changes.
// Faults: those of the deletion for a target that is not there.
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
// their next run. Token is that of the preview, "" for any that holds. Faults: schema_not_found,
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
