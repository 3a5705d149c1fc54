package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

type putRequest struct {
	Body Schema `body:"json"`
}

// put is PUT /api/schema/customer.
func (r Resource) put() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_create_customer_schema", Routes: operation.Routes("PUT /api/schema/customer"),
		Group:   group,
		Summary: "Creates a schema of the customer, or replaces the one with the given id",
		Description: "The content is compiled: a schema that cannot check rows is refused, and " +
			"the error says where. Runs that began before a change continue with the old " +
			"schema.",
		Access: auth.Write, Agents: operation.Adds,
		Rate: limits.General, Idempotency: operation.Required,
		Invalid: fault.SchemaValidation,
		Errors: []fault.Code{fault.SchemaValidation, fault.LimitReached,
			fault.OutOfSpace},
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Schema, error) {
		return r.save(ctx, from, from.Customer, &in.Body)
	})
}

// putGlobal is PUT /api/schema.
func (r Resource) putGlobal() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_put_global_schema", Routes: operation.Routes("PUT /api/schema"), Group: group,
		Summary: "Creates a global schema, or replaces the one with the given id, or with the " +
			"given type and version",
		Description: "Every customer may read global schemas and use them in AI_CONF scrapers.",
		Access:      auth.Admin, Rate: limits.General, Idempotency: operation.Optional,
		Invalid: fault.SchemaValidation,
		Errors: []fault.Code{fault.SchemaValidation, fault.LimitReached,
			fault.OutOfSpace},
	}, func(ctx context.Context, from *operation.Caller, in *putRequest) (Schema, error) {
		return r.save(ctx, from, "", &in.Body)
	})
}

// save saves a schema of a customer; customer is "" for a global one.
func (r Resource) save(ctx context.Context, from *operation.Caller, customer string,
	b *Schema) (Schema, error) {
	var content bytes.Buffer
	if err := json.Compact(&content, b.Content); err != nil {
		return Schema{}, fmt.Errorf("schemas: compact a valid document: %w", err)
	}
	saved, err := client.Do(ctx, r.Client,
		client.PutSchema{ID: r.IDs.New(), Known: b.ID, Customer: customer,
			Name: nameOf(b), Version: b.Version, Type: b.Type, Content: content.Bytes(),
			Description: b.Description,
			TemplateID:  b.TemplateID, TemplateName: b.TemplateName,
			DomainPatterns: b.DomainPatterns},
		from.Call)
	if err != nil {
		return Schema{}, err
	}
	return NewSchema(&saved), nil
}

// nameOf is the name of a schema in lists.
func nameOf(b *Schema) string {
	var titled struct {
		Title any `json:"title"`
	}
	title := ""
	if json.Unmarshal(b.Content, &titled) == nil {
		title, _ = titled.Title.(string)
	}
	for _, name := range []string{b.Name, title, b.TemplateName} {
		if name != "" {
			return truncate(name)
		}
	}
	return fmt.Sprintf("%s v%d", b.Type, b.Version)
}

// maxName bounds a name, characters.
const maxName = 200

func truncate(name string) string {
	if runes := []rune(name); len(runes) > maxName {
		return string(runes[:maxName])
	}
	return name
}
