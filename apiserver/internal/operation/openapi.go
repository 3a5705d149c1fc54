package operation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/pkg/fault"
)

// object is a JSON object; its members are written in the order of their names.
type object = map[string]any

// Tag is a group of operations, and what they are about.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// About is what a description says besides its operations.
type About struct {
	Title, Version, Description string
	// Tags are the groups of operations, in order.
	Tags []Tag
	// Examples are the values that examples are made of.
	Examples Examples
	// Conditions are if, then and else of components, by the component's name. They say how members
	// depend on each other.
	Conditions map[string]*jsonschema.Schema
	// Most are upper bounds that only this server has, by component.member.
	Most map[string]float64
	// Part says that only some operations are described, so components may be missing. Each is
	// described once: what calls it by its id has no other methods.
	Part bool
}

// OpenAPI describes operations as an OpenAPI 3.1 document, in indented JSON.
func OpenAPI(about About, ops []*Operation) ([]byte, error) {
	s := about.examples()
	paths := object{}
	for _, op := range ops {
		routes := op.Routes
		if about.Part {
			routes = routes[:1]
		}
		for i, route := range routes {
			item, ok := paths[route.Path].(object)
			if !ok {
				item = object{}
				paths[route.Path] = item
			}
			item[strings.ToLower(route.Method)] = op.describe(s, i)
		}
	}
	s.schemas.of(reflect.TypeFor[Problem](), false)
	for name, condition := range about.Conditions {
		component, known := s.components[name]
		switch {
		case !known && about.Part:
			continue
		case !known:
			return nil, fmt.Errorf("operation: a condition of %s, which is no component", name)
		}
		component.If, component.Then, component.Else = condition.If, condition.Then, condition.Else
	}
	for name, most := range about.Most {
		component, member, _ := strings.Cut(name, ".")
		if known := s.components[component]; known != nil || !about.Part {
			known.Properties[member].Maximum = &most
		}
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{"title": about.Title, "version": about.Version,
			"description": about.Description,
			"contact":     object{"name": "The operator of this server"},
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []object{{"url": "/", "description": "The server that returned this document"}},
		"tags":    about.Tags,
		"paths":   paths,
		"components": object{
			"schemas": s.components,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer",
				"description": "An API key (svc_live_<prefix>.<secret>) or a sign-in token."}},
		},
	}
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("operation: the OpenAPI document: %w", err)
	}
	return append(data, '\n'), nil
}

// describe returns the OpenAPI operation of one route.
func (op *Operation) describe(s *examples, route int) object {
	id := op.ID
	if route > 0 { // aliases differ by method; the golden test's loader refuses duplicate ids
		id += "_by_" + strings.ToLower(op.Routes[route].Method)
	}
	description := strings.TrimSpace(op.Description + "\n\nAccess: " + string(op.Access) + ".")
	if op.Feature != "" {
		description += " Feature of plans: " + string(op.Feature) + "."
	}
	if op.Rate != limits.Unlimited {
		description += " Rate class: " + string(op.Rate) + "."
	}
	out := object{"operationId": id, "summary": op.Summary,
		"description": strings.TrimSpace(description),
		"responses":   op.responses(s)}
	if op.Agents != "" {
		out["x-agents"] = NewTool(op).summary()
	}
	if op.Group != "" {
		out["tags"] = []string{op.Group}
	}
	out["security"] = []object{} // no credential is needed
	if op.Access != auth.Public {
		out["security"] = []object{{"bearer": []string{}}}
	}
	if parameters := op.parameters(s); len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if op.request.body != nil {
		out["requestBody"] = op.requestBody(s)
	}
	return out
}

func (op *Operation) parameters(s *examples) []object {
	var list []object
	add := func(in string, f *field, note string) {
		p := object{"name": f.name, "in": in, "schema": parameterSchema(s, f)}
		if f.rules.required && note == "" {
			p["required"] = true
		}
		text := f.rules.doc
		if text != "" && note != "" {
			text = strings.TrimSuffix(text, ".") + ". "
		}
		if text += note; text != "" {
			p["description"] = text
		}
		list = append(list, withExample(p, s.parameter(op, f, f.rules.required && note == "")))
	}
	for i := range op.request.path.fields {
		add("path", &op.request.path.fields[i], "")
	}
	for i := range op.request.query.fields {
		add("query", &op.request.query.fields[i], "")
	}
	for i := range op.request.header.fields {
		add("header", &op.request.header.fields[i], "")
	}
	if op.request.stream != nil {
		members := op.request.shapes[op.request.body.typ].fields
		for i := range members {
			if !members[i].rules.alone {
				add("query", &members[i], "With a streamed body only, in place of the member "+
					"of the JSON body.")
			}
		}
	}
	if op.Idempotency != Ignored {
		list = append(list, object{"name": "Idempotency-Key", "in": "header",
			"required": op.Idempotency == Required,
			"description": "For example a UUID. The same key within 24 hours returns the first " +
				"answer again.",
			"schema": object{"type": "string", "minLength": 1, "maxLength": 255,
				"pattern": "^[!-~]([ -~]*[!-~])?$"},
			"example": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"})
	}
	return list
}

// parameterSchema is the schema of a parameter that is given. Its text is never null, even if its
// type may be null elsewhere.
func parameterSchema(s *examples, f *field) *jsonschema.Schema {
	made := s.value(f, true)
	if made.Ref == "" {
		made.Description = ""
	}
	if types := slices.DeleteFunc(slices.Clone(made.Types), func(name string) bool {
		return name == "null"
	}); len(types) == 1 {
		made.Type, made.Types = types[0], nil
	}
	return made
}

func (op *Operation) requestBody(s *examples) object {
	if op.request.body.raw {
		media, schema := op.request.mediaTypes()[0], object{"type": "object"}
		if media != "application/json" {
			schema = object{"type": "string", "format": "binary"}
		}
		return object{"required": true, "content": object{
			media: withExample(object{"schema": schema}, s.text(op, media))}}
	}
	schema := s.schemas.of(op.request.body.typ, true)
	op.request.body.rules.describe(schema, op.request.body.typ, true)
	content := object{op.request.mediaTypes()[0]: withExample(object{"schema": schema},
		s.of(op.request.body.typ, true, op.ID))}
	if op.request.stream != nil {
		for _, media := range op.request.stream.types {
			content[media] = withExample(object{"schema": object{"type": "string"}},
				s.text(op, media))
		}
	}
	return object{"required": true, "content": content}
}

func (op *Operation) responses(s *examples) object {
	answer := object{"description": "Done"}
	switch {
	case op.response == reflect.TypeFor[None]():
	case op.Streams():
		content := object{"schema": object{"type": "string"}}
		if op.Event != nil {
			content["schema"] = s.schemas.of(reflect.TypeOf(op.Event), false)
			content = withExample(content, s.of(reflect.TypeOf(op.Event), false, op.ID))
			answer["description"] = "Server-Sent Events; the schema describes an event's data"
		}
		if len(op.NamedEvents) > 0 {
			answer["description"] = op.describeEvents(s, content)
		}
		answer["content"] = object{"text/event-stream": content}
	case op.response == reflect.TypeFor[Download](), op.response == fileType:
		content := object{}
		for _, media := range op.media() {
			content[media] = withExample(
				object{"schema": object{"type": "string", "format": "binary"}}, s.text(op, media))
		}
		answer["content"] = content
	case op.response == reflect.TypeFor[Raw](), op.response == reflect.TypeFor[Served]():
		content := object{}
		for _, media := range op.media() {
			schema := object{"type": "string"}
			if media == "application/json" {
				schema["type"] = "object"
			}
			content[media] = withExample(object{"schema": schema}, s.text(op, media))
		}
		answer["content"] = content
	default:
		content := object{"application/json": withExample(
			object{"schema": s.schemas.of(op.response, false)}, s.of(op.response, false, op.ID))}
		for _, media := range op.Media {
			content[media] = withExample(object{"schema": object{"type": "string"}},
				s.text(op, media))
		}
		answer["content"] = content
	}
	out := object{fmt.Sprint(op.Status): answer}
	if op.Later {
		out["202"] = object{"description": "Partial result: the rest is still in progress",
			"content": answer["content"]}
	}
	if op.orNone {
		out["204"] = object{"description": "Done, without a body"}
	}
	if op.response == fileType {
		out["206"] = object{"description": "The requested range",
			"content": answer["content"]}
		out["304"] = object{"description": "Not modified: the client has these bytes"}
	}
	for status, codes := range op.problems() {
		content := object{"application/problem+json": object{
			"schema": object{"$ref": "#/components/schemas/Problem"}}}
		if op.answersPages() && status < http.StatusInternalServerError {
			content["text/html"] = object{"schema": object{"type": "string"}}
		}
		out[fmt.Sprint(status)] = object{"description": "Codes: " + strings.Join(codes, ", "),
			"content": content}
	}
	return out
}

// answersPages says whether people see the operation's answers, including refusals.
func (op *Operation) answersPages() bool {
	return op.Browser && slices.Contains(op.Media, "text/html")
}

// describeEvents adds the schemas and examples of named events to the media type. It returns a
// description that lists the events.
func (op *Operation) describeEvents(s *examples, content object) string {
	var schemas []*jsonschema.Schema
	examples, names := object{}, make([]string, len(op.NamedEvents))
	for i, event := range op.NamedEvents {
		t := reflect.TypeOf(event.Data)
		schemas = append(schemas, s.schemas.of(t, false))
		examples[event.Name] = object{"value": s.of(t, false, op.ID+"."+event.Name)}
		names[i] = event.Name
	}
	content["schema"] = object{"anyOf": schemas}
	content["examples"] = examples
	return "Server-Sent Events; the schemas describe the data of " + strings.Join(names, ", ")
}

// media are the media types of a Download or a Raw.
func (op *Operation) media() []string {
	if len(op.Media) == 0 {
		return []string{"application/octet-stream"}
	}
	return op.Media
}

// problems are the error codes by status: the handler's own and those that the declaration implies.
func (op *Operation) problems() map[int][]string {
	codes := append([]fault.Code{fault.Internal, fault.Unavailable, fault.HeaderTooLarge,
		fault.UploadTooSlow}, op.Errors...)
	if op.Access != auth.Public {
		codes = append(codes, fault.Unauthorized, fault.ScopeRejected,
			fault.AccountDisabled, fault.CustomerBlocked)
	}
	if op.Access != auth.Public && op.Access != auth.SignUp {
		codes = append(codes, fault.CustomerRequired)
	}
	switch {
	case op.Access == auth.SignInOnly, op.Access == auth.SignUp:
		codes = append(codes, fault.SignInOnly)
	case op.isLong():
		codes = append(codes, fault.TooManyStreams)
	}
	if op.Rate != limits.Unlimited {
		codes = append(codes, fault.RateLimited)
	}
	if op.Browser || op.Cookieless {
		codes = append(codes, fault.CrossSite)
	}
	if op.Feature != "" {
		codes = append(codes, fault.FeatureNotInPlan)
	}
	if op.Idempotency != Ignored {
		codes = append(codes, fault.IdempotencyInFlight, fault.IdempotencyReused,
			fault.IdempotencyOverflow)
	}
	if op.Idempotency == Required {
		codes = append(codes, fault.IdempotencyRequired)
	}
	codes = append(codes, op.request.problems()...)
	codes = append(codes, op.Invalid)
	byStatus := map[int][]string{}
	for _, code := range codes {
		status := fault.Lookup(code).Status
		if !slices.Contains(byStatus[status], string(code)) {
			byStatus[status] = append(byStatus[status], string(code))
		}
	}
	for _, list := range byStatus {
		slices.Sort(list)
	}
	return byStatus
}

// problems are the codes with which decoding refuses: those of the request as such, and those of
// its fields.
func (r *request) problems() []fault.Code {
	codes := []fault.Code{fault.InvalidRequest, fault.UnknownParameter, fault.InvalidBody}
	if r.body != nil {
		codes = append(codes, fault.UnknownField, fault.PayloadTooLarge, fault.UnsupportedMediaType)
	}
	of := func(fields []field) {
		for i := range fields {
			if fields[i].typ == idType {
				codes = append(codes, fault.InvalidID)
			}
			if code := fields[i].rules.code; code != "" {
				codes = append(codes, code)
			}
		}
	}
	of(r.path.fields)
	of(r.query.fields)
	for _, shape := range r.shapes {
		of(shape.fields)
	}
	return codes
}

// Line describes an operation in one line, for the list of all operations.
func (op *Operation) Line() string {
	routes := make([]string, len(op.Routes))
	for i, r := range op.Routes {
		routes[i] = r.Method + " " + r.Path
	}
	idempotency := string(op.Idempotency)
	if op.Idempotency == Ignored {
		idempotency = "-"
	}
	rate := string(op.Rate)
	if op.Rate == limits.Unlimited {
		rate = "-"
	}
	feature := string(op.Feature)
	if feature == "" {
		feature = "-"
	}
	return fmt.Sprintf("%s\t%s\taccess %s\tfeature %s\trate %s\tidempotency %s", op.ID,
		strings.Join(routes, ", "), op.Access, feature, rate, idempotency)
}
