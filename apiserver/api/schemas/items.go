package schemas

import (
	"context"
	"strings"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// CommonField is a common field with its JSON type.
type CommonField struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// common lists the field names that extraction can find, by type.
const common = `string name title description brand manufacturer model sku mpn gtin isbn availability condition color size
	material category currency image url author publisher articleBody reviewBody language seller telephone email
	streetAddress addressLocality postalCode addressRegion addressCountry location datePublished dateModified startDate
	endDate validThrough company employmentType organizer performer
	number price originalPrice lowPrice highPrice rating bestRating latitude longitude salary area
	integer reviewCount ratingCount rooms
	boolean inStock
	array images keywords authors`

// items is GET /api/schema/items/existing.
func (Resource) items() *operation.Operation {
	items := []CommonField{}
	kind := ""
	for word := range strings.FieldsSeq(common) {
		switch word {
		case "string", "number", "integer", "boolean", "array":
			kind = word
		default:
			items = append(items, CommonField{Name: word, Type: kind})
		}
	}
	return operation.Define(operation.Declaration{
		ID: "svc_list_schema_items", Routes: operation.Routes("GET /api/schema/items/existing"),
		Group:   group,
		Summary: "Lists common field names with their JSON types",
		Description: "AI_CONF finds these fields in pages' structured data; other names work, " +
			"too.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(context.Context, *operation.Caller, *struct{}) ([]CommonField, error) {
		return items, nil
	})
}
