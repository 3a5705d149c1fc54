package apiserver

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/api/scrapers"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// conditions are the constraints between members of a request's component, by component name.
// Handlers enforce them; TestTheDescriptionIsEnforced compares the two. Each is an if/then/else,
// which client generators ignore, so that the generated types stay plain.
func conditions() map[string]*jsonschema.Schema {
	scraper := conditionOfScrapers()
	return map[string]*jsonschema.Schema{
		"ScraperInput":         scraper,
		"EnrichedScraperInput": scraper,
		"FieldInput": when("kind", text(model.Attr),
			has("attr", &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)}),
			properties("attr", blank())),
		"PostProcessRuleInput": conditionOfRules(),
		"PrelaunchInput": when("tokens", filled("object"), has("discoveryUrl",
			&jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)}), nil),
		"SchemaInput": when("content", typed("object"), properties("content", contentOfRows()),
			nil),
		"GroupInput": when("id", id(), nil, has("name", typed("string"))),
		"ListRunInput": when("endpointTag",
			text(append(extract.Tags(), model.WebsiteContacts)...),
			join(properties("itemsConfig", none()), properties("templateScraperId", blank()),
				conditionOfLists()),
			join(properties("endpointTag", blank()), oneSource(), conditionOfLists())),
	}
}

// contentOfRows requires a row, or an array of rows, described inline or by a reference.
func contentOfRows() *jsonschema.Schema {
	row := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{has("$ref",
		&jsonschema.Schema{Type: "string", Pattern: "^#."}), has("properties",
		&jsonschema.Schema{Type: "object", MinProperties: jsonschema.Ptr(1)})}}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{row, has("items", row)}}
}

// conditionOfLists are the constraints that every list run has, whatever reads it.
func conditionOfLists() *jsonschema.Schema {
	return join(
		when("scraperId", id(), nil, join(has("groupId", id()),
			has("name", &jsonschema.Schema{Type: "string", Pattern: operation.Filled()}),
			has("urls", filled("string")))),
		when("type", typed("string"), has("itemsConfig", filled("object")), nil),
		when("rerun", text(true), properties("force", &jsonschema.Schema{Not: text(true)}), nil))
}

// oneSource requires exactly one of the members that say how to read addresses.
func oneSource() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{has("itemsConfig", filled("object")),
		has("templateScraperId", id()), has("scraperId", id())}}
}

func conditionOfRules() *jsonschema.Schema {
	code := &jsonschema.Schema{Type: "string", Pattern: "^[A-Z]{3}$"}
	params := func(members ...*jsonschema.Schema) *jsonschema.Schema {
		made := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{},
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
		for _, member := range members {
			maps.Copy(made.Properties, member.Properties)
			made.Required = append(made.Required, member.Required...)
		}
		return has("params", made)
	}
	regex := params(has("pattern", &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1),
		MaxLength: jsonschema.Ptr(512)}),
		properties("replacement", &jsonschema.Schema{Types: []string{"string", "null"},
			MaxLength: jsonschema.Ptr(1024)}),
		properties("group", &jsonschema.Schema{Types: []string{"integer", "null"},
			Minimum: jsonschema.Ptr(0.0)}),
		properties("onNoMatch", text[any]("KEEP", "NULL", "EMPTY", nil)))
	regex = join(regex, properties("params",
		when("group", typed("integer"), properties("replacement", typed("null")), nil)))
	return when("kind", text("CURRENCY_CONVERT"), params(has("from", code), has("to", code)),
		when("kind", text("ENUM_MAP"), params(has("mapping",
			&jsonschema.Schema{Type: "object", MinProperties: jsonschema.Ptr(1)}),
			properties("default", &jsonschema.Schema{Description: "Any value"})), regex))
}

// conditionOfScrapers is a chain of conditions, one for each scraper type.
func conditionOfScrapers() *jsonschema.Schema {
	noSchema := properties("schema", typed("null"))
	noFields := properties("itemsConfig", none())
	noHidden := source(properties("tryWithHiddenData", text[any](false, nil)))
	noTag := when("id", id(), nil, properties("config", properties("endpointTag", blank())))
	fields := join(has("itemsConfig", filled("object")), noSchema, noHidden, noTag, sourceOfPages())
	search := source(join(has("queries", filled("string")), properties("url", blank()),
		properties("curl", blank()), noTokens(),
		properties("pagination", join(lacks("param", "start", "step", "pageSize", "template",
			"selector", "cursorPath"), when("type", text(model.URLPageParam), nil,
			join(properties("type", text(model.PaginationNone)), lacks("max")))))))
	types := []struct {
		of   model.ScraperType
		then *jsonschema.Schema
	}{
		{model.File, when("id", id(), conditionOfUploads(),
			properties("type", &jsonschema.Schema{Not: text(model.File)}))},
		{model.SearchEngineSearch, join(noSchema, noFields, noHidden, noTag, search)},
		{model.AIConf, join(has("schema", typed("object")), noFields, noTag, sourceOfPages())},
		{model.Marketplace, join(noSchema, noFields, noHidden, sourceOfPages(),
			when("id", id(), nil, properties("config", properties("endpointTag",
				text(append([]any{"", nil}, anys(extract.Tags())...)...)))))},
		{model.ApplicationLDJSON, join(noSchema, noTag, sourceOfPages())},
	}
	made := fields
	for _, t := range slices.Backward(types) {
		made = when("type", text(t.of), t.then, made)
	}
	return made
}

// conditionOfUploads lists the members that must be blank for the scraper of an upload.
func conditionOfUploads() *jsonschema.Schema {
	return join(lacks("schedule", "scheduleTimezone"), properties("schema", typed("null")),
		properties("itemsConfig", none()), properties("postProcessRules", none()),
		source(join(lacks("url", "curl", "engine"), properties("queries", none()),
			properties("pagination", typed("null")), properties("prelaunch", typed("null")),
			properties("tryWithHiddenData", text[any](false, nil)))),
		properties("config", join(lacks("endpointTag"), properties("tiers", none()),
			properties("politeness", typed("null")), properties("keepBodyDays", typed("null")))))
}

// sourceOfPages requires an address or a curl command, as all types but searches do. The scraper of
// a list has neither, and only its id tells that it is one.
func sourceOfPages() *jsonschema.Schema {
	one := source(&jsonschema.Schema{OneOf: []*jsonschema.Schema{has("url", some()),
		has("curl", some())}})
	return join(when("id", id(), nil, one),
		source(join(properties("queries", none()), properties("engine", blank()),
			when("curl", some(), join(properties("url", blank()), properties("pagination",
				properties("type", &jsonschema.Schema{Not: text(model.LoadMore,
					model.InfiniteScroll)}))), noTokens()),
			properties("pagination", conditionOfPages()))))
}

// noTokens requires that there are no tokens, because the source has no placeholders.
func noTokens() *jsonschema.Schema {
	return properties("prelaunch", properties("tokens", none()))
}

// conditionOfPages is a chain of conditions, one for each pagination type.
func conditionOfPages() *jsonschema.Schema {
	needed := map[string]*jsonschema.Schema{"param": some(), "template": some(),
		"pageSize": typed("integer"), "selector": some(), "cursorPath": some()}
	var made *jsonschema.Schema
	members := scrapers.PaginationMembers()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		others := slices.DeleteFunc([]string{"param", "start", "step", "pageSize", "template",
			"selector", "cursorPath", "max"},
			func(member string) bool { return slices.Contains(members[name], member) })
		then := []*jsonschema.Schema{lacks(others...)}
		for _, member := range members[name] {
			if schema := needed[member]; schema != nil {
				then = append(then, has(member, schema))
			}
		}
		made = when("type", text(name), join(then...), made)
	}
	return made
}

// The building blocks of conditions. A blank or empty member counts as absent.
func blank() *jsonschema.Schema { return text[any]("", nil) }
func some() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)}
}
func none() *jsonschema.Schema { return &jsonschema.Schema{MaxItems: jsonschema.Ptr(0)} }
func filled(with string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: typed(with), MinItems: jsonschema.Ptr(1)}
}
func id() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(24)}
}

func typed(name string) *jsonschema.Schema { return &jsonschema.Schema{Type: name} }

// text requires one of the given values.
func text[T any](values ...T) *jsonschema.Schema {
	return &jsonschema.Schema{Enum: anys(values)}
}

func anys[T any](values []T) []any {
	made := make([]any, len(values))
	for i, value := range values {
		made[i] = value
	}
	return made
}

// properties constrains a member if it is present; has also requires it to be present.
func properties(member string, schema *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{member: schema}}
}

func has(member string, schema *jsonschema.Schema) *jsonschema.Schema {
	made := properties(member, schema)
	made.Required = []string{member}
	return made
}

func source(schema *jsonschema.Schema) *jsonschema.Schema {
	return properties("sourceConfig", schema)
}

// lacks requires the members to be blank.
func lacks(members ...string) *jsonschema.Schema {
	made := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{}}
	for _, member := range members {
		made.Properties[member] = blank()
	}
	return made
}

func join(all ...*jsonschema.Schema) *jsonschema.Schema {
	if len(all) == 1 {
		return all[0]
	}
	return &jsonschema.Schema{AllOf: all}
}

// when applies then if member matches like, else otherwise. A nil schema constrains nothing.
func when(member string, like, then, otherwise *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{If: has(member, like), Then: then, Else: otherwise}
}
