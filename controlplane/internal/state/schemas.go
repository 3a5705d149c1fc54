package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Schema is an extraction schema, a customer's or a global one (Customer "").
type Schema struct {
	ID             ids.ID   `cbor:"1,keyasint"`
	Customer       string   `cbor:"2,keyasint,omitempty"`
	Name           string   `cbor:"3,keyasint,omitempty"`
	Version        int64    `cbor:"4,keyasint"`
	Type           string   `cbor:"5,keyasint"`
	Content        []byte   `cbor:"6,keyasint"` // a JSON Schema document
	Description    string   `cbor:"7,keyasint,omitempty"`
	TemplateID     string   `cbor:"8,keyasint,omitempty"`
	TemplateName   string   `cbor:"9,keyasint,omitempty"`
	DomainPatterns []string `cbor:"10,keyasint,omitempty"`
	CreatedAt      int64    `cbor:"11,keyasint"`
	UpdatedAt      int64    `cbor:"12,keyasint"`
}

var schemasTable = define(1, "schemas",
	index("id", true, func(s *Schema) []any { return []any{s.ID} }),
	index("customer", true, func(s *Schema) []any { return []any{s.Customer, s.CreatedAt, s.ID} }),
	index("version", true, func(s *Schema) []any {
		return []any{s.Customer, s.Type, s.Version,
			s.ID}
	}),
).told((*Schema).telling)

// Schema returns the schema with an id, or nil.
func (v *View) Schema(id ids.ID) *Schema { return schemasTable.first(v, "id", id) }

// ReadableSchema returns a schema that a customer may read: its own or a global one; else nil. id
// is as a scraper has it.
func (v *View) ReadableSchema(customer, id string) *Schema {
	parsed, err := ids.Parse(id)
	if err != nil {
		return nil
	}
	s := v.Schema(parsed)
	if s == nil || s.Customer != "" && s.Customer != customer {
		return nil
	}
	return s
}

// Schemas lists a customer's schemas, "" for the global ones, oldest first.
func (v *View) Schemas(customer string) []*Schema {
	return schemasTable.all(v, "customer_prefix", customer)
}

// GlobalSchema returns the global schema of a type and version, nil when there is none.
func (v *View) GlobalSchema(kind string, version int64) *Schema {
	return schemasTable.first(v, "version_prefix", "", kind, version)
}

// RecipeOf returns a scraper's recipe as it would be frozen now, with the endpoint tag if it has
// one. ok is false if the customer has no such schema (any more).
func (v *View) RecipeOf(customer string, spec *model.Scraper, tag string) (recipe model.Recipe,
	ok bool) {
	recipe = spec.Recipe()
	if tag != "" {
		recipe.Endpoint = tag
	}
	if spec.Schema == nil {
		return recipe, true
	}
	s := v.ReadableSchema(customer, spec.Schema.ID)
	if s == nil {
		return recipe, false
	}
	recipe.Schema = s.Content
	return recipe, true
}

// PutSchema adds or replaces a schema.
func (t *Tx) PutSchema(s *Schema) { schemasTable.put(t, s) }

// RemoveSchema removes a schema.
func (t *Tx) RemoveSchema(s *Schema) { schemasTable.remove(t, s) }

// Preview is a deletion that was previewed and not confirmed yet.
type Preview struct {
	Token     string  `cbor:"1,keyasint"`
	Customer  string  `cbor:"2,keyasint"`
	Operation string  `cbor:"3,keyasint"`
	Target    ids.ID  `cbor:"4,keyasint"`
	Query     string  `cbor:"5,keyasint,omitempty"`
	Cascade   Cascade `cbor:"6,keyasint"`
	CreatedAt int64   `cbor:"7,keyasint"`
	Expires   int64   `cbor:"8,keyasint"`
}

// Cascade is what a deletion takes along with its target.
type Cascade struct {
	Name   string  `cbor:"1,keyasint"` // of the target
	Type   string  `cbor:"2,keyasint"` // of the target: SCHEMA
	Counts []Count `cbor:"3,keyasint,omitempty"`
	Digest uint64  `cbor:"4,keyasint"` // of the ids of what it takes along
}

// Count returns how many things of a kind it takes along, 0 for a kind that it does not count.
func (c *Cascade) Count(name string) int {
	for _, count := range c.Counts {
		if count.Name == name {
			return count.N
		}
	}
	return 0
}

// Count is how many things of a kind a deletion takes along.
type Count struct {
	Name string `cbor:"1,keyasint"`
	N    int    `cbor:"2,keyasint"`
}

var previewsTable = define(1, "previews",
	index("id", true, func(p *Preview) []any { return []any{p.Token} }),
	index("target", true, func(p *Preview) []any {
		return []any{p.Customer, p.Operation, p.Target, p.Query, p.CreatedAt, p.Token}
	}),
	index("customer", true, func(p *Preview) []any {
		return []any{p.Customer, p.Expires,
			p.Token}
	}),
	index("expiry", true, func(p *Preview) []any { return []any{p.Expires, p.Token} }),
).untold()

// Preview returns the preview with a token, or nil.
func (v *View) Preview(token string) *Preview { return previewsTable.first(v, "id", token) }

// NewestPreview returns the newest preview of a deletion, nil when there is none.
func (v *View) NewestPreview(customer, operation string, target ids.ID, query string) *Preview {
	var newest *Preview
	previewsTable.each(v, true, func(p *Preview) bool { newest = p; return false }, "target_prefix",
		customer, operation, target, query)
	return newest
}

// Previews lists a customer's previews in the order of expiry.
func (v *View) Previews(customer string) []*Preview {
	return previewsTable.all(v, "customer_prefix", customer)
}

// PreviewsByExpiry visits all previews in the order of expiry, until visit returns false.
func (v *View) PreviewsByExpiry(visit func(*Preview) bool) {
	previewsTable.each(v, false, visit, "expiry_prefix")
}

// PutPreview adds a preview.
func (t *Tx) PutPreview(p *Preview) { previewsTable.put(t, p) }

// RemovePreview removes a preview.
func (t *Tx) RemovePreview(p *Preview) { previewsTable.remove(t, p) }
