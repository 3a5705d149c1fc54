// Package schemas owns the operations on extraction schemas (specification 4.8): the customers'
// own, and the admins' global ones.
package schemas

import (
	"encoding/json"
	"errors"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/schema"
)

const group = "Schemas"

// Resource has the operations on schemas and their dependencies.
type Resource struct {
	Client client.Proposer
	IDs    ids.Source
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.put(),
		r.list(),
		r.get(),
		r.previewDelete(),
		r.delete(),
		r.items(),
		r.getGlobal(),
		r.listGlobal(),
		r.putGlobal(),
	}
}

// Schema is the specification's Schema.
type Schema struct {
	ID             ids.ID          `json:"id" doc:"Set it to update a schema; an id that is not one of the customer's schemas creates a new one"`
	Name           string          `json:"name" max:"200" form:"line" doc:"Name in the list; if empty, the content's title, the template's name, or type and version"`
	Version        int64           `json:"version" required:"true" min:"0" max:"1000000000"`
	Type           string          `json:"type" required:"true" enum:"PRODUCT,REVIEW,ARTICLE,JOB_POSTING,REAL_ESTATE,EVENT,ORGANIZATION,SERP,CUSTOM"`
	Content        json.RawMessage `json:"content" required:"true" object:"true" doc:"JSON Schema of an object with properties, or of an array of such objects. At most 65,536 bytes and 500 properties; references only within the document"`
	Description    string          `json:"description" max:"2000"`
	TemplateID     string          `json:"templateId" max:"64" doc:"Global schema that this one was forked from"`
	TemplateName   string          `json:"templateName" max:"200"`
	DomainPatterns []string        `json:"domainPatterns" each:"min=1 max=253" max:"100" doc:"Hosts that the schema is meant for"`
	CustomerRef    *string         `json:"customerRef" stamped:"true" doc:"Null for global schemas"`
	CreatedAt      api.Time        `json:"createdAt" stamped:"true"`
	UpdatedAt      api.Time        `json:"updatedAt" stamped:"true"`
}

// Validate implements operation.Validator.
func (s *Schema) Validate() fault.List {
	var faults fault.List
	if _, err := schema.Compile(s.Content); len(s.Content) > 0 && err != nil {
		faults = append(faults, problems(err)...)
	}
	return faults
}

// problems converts the error of a document to faults.
func problems(err error) fault.List {
	var list fault.List
	if !errors.As(err, &list) {
		return fault.List{fault.Invalid(fault.SchemaValidation, "content", "%v", err)}
	}
	return list
}

// SchemaListEntry is the specification's SchemaListDTO.
type SchemaListEntry struct {
	ID      ids.ID `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Version int64  `json:"version"`
}

// NewSchema converts a schema with its document to the API's form.
func NewSchema(s *client.Schema) Schema {
	made := Schema{ID: s.ID, Name: s.Name, Version: s.Version, Type: s.Type, Content: s.Content,
		Description: s.Description,
		TemplateID:  s.TemplateID, TemplateName: s.TemplateName, DomainPatterns: s.DomainPatterns,
		CreatedAt: api.Time(s.CreatedAt), UpdatedAt: api.Time(s.UpdatedAt)}
	if made.DomainPatterns == nil {
		made.DomainPatterns = []string{}
	}
	if s.Customer != "" {
		made.CustomerRef = &s.Customer
	}
	return made
}

func newList(list []*client.Schema) []SchemaListEntry {
	listed := make([]SchemaListEntry, len(list))
	for i, s := range list {
		listed[i] = SchemaListEntry{ID: s.ID, Name: s.Name, Type: s.Type, Version: s.Version}
	}
	return listed
}
