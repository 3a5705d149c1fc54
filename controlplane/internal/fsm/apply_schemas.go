package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of schemas. A document has at most 64 KiB, and every node stores all of them.
const (
	maxSchemas       = 200 // of a customer
	maxGlobalSchemas = 1_000
)

func putSchema(tx *state.Tx, p command.PutSchemaPayload) (state.Schema, error) {
	if tx.IsShort() {
		return state.Schema{}, errShort()
	}
	schema := state.Schema{ID: p.ID, Customer: p.Customer, CreatedAt: tx.Now}
	known := tx.Schema(p.Known)
	if known != nil && known.Customer != p.Customer {
		known = nil
	}
	if p.Customer == "" {
		same := tx.GlobalSchema(p.Type, p.Version)
		switch {
		case known == nil:
			known = same
		case same != nil && same.ID != known.ID:
			return state.Schema{}, fault.Invalid(fault.SchemaValidation, "version",
				"another global schema has this type and version")
		}
	}
	if known != nil {
		schema = *known
	} else {
		most := maxSchemas
		if p.Customer == "" {
			most = maxGlobalSchemas
		}
		if len(tx.Schemas(p.Customer)) >= most {
			return state.Schema{},
				fault.New(fault.LimitReached, "there are at most %d schemas", most)
		}
	}
	schema.Name, schema.Version, schema.Type, schema.Content = p.Name, p.Version, p.Type, p.Content
	schema.Description, schema.TemplateID, schema.TemplateName = p.Description, p.TemplateID,
		p.TemplateName
	schema.DomainPatterns, schema.UpdatedAt = p.DomainPatterns, tx.Now
	saved := schema
	tx.PutSchema(&saved)
	return schema, nil
}

// cascadeOfSchema returns the scrapers that will fail without the schema.
func cascadeOfSchema(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	schema := tx.Schema(d.Target)
	if schema == nil || schema.Customer != d.Customer {
		return state.Cascade{}, fault.Invalid(fault.SchemaNotFound, "id", "there is no such schema")
	}
	var users []ids.ID
	id := schema.ID.String()
	tx.Scrapers(d.Customer, func(s *state.Scraper) bool {
		if s.Spec.Schema != nil && s.Spec.Schema.ID == id {
			users = append(users, s.ID)
		}
		return true
	})
	name := schema.Name
	if name == "" {
		name = schema.Type
	}
	return state.Cascade{Name: name, Type: "SCHEMA",
		Counts: []state.Count{{Name: "scrapers", N: len(users)}},
		Digest: digest(users)}, nil
}

func deleteSchema(tx *state.Tx, p command.DeleteSchemaPayload) (command.None, error) {
	if err := spendPreview(tx, &p.Deletion, p.Token); err != nil {
		return command.None{}, err
	}
	tx.RemoveSchema(tx.Schema(p.Deletion.Target))
	return command.None{}, nil
}
