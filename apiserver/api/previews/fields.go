package previews

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"shoal.dev/shoal/apiserver/api/runs"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Wanted is the body of a preview of fields.
type Wanted struct {
	URL    string   `json:"url" required:"true" min:"1"`
	Fields []string `json:"fields" required:"true" min:"1" max:"100" doc:"What to look for: price, brand, release date …"`
}

// Shown answers a preview of fields.
type Shown struct {
	URL       string         `json:"url"`
	Fields    map[string]any `json:"fields" doc:"What the page says, by the names asked for; null where it says nothing"`
	ElapsedMs int64          `json:"elapsedMs"`
}

type fieldsRequest struct {
	Body Wanted `body:"json" limit:"65536"`
}

const (
	fieldsID     = "svc_preview_from_url"
	maxNameChars = 100
)

// Validate implements operation.Validator.
func (r *fieldsRequest) Validate() fault.List {
	var faults fault.List
	seen := map[string]bool{}
	for i, name := range r.Body.Fields {
		switch {
		case strings.TrimSpace(name) == "" || len([]rune(name)) > maxNameChars ||
			strings.HasPrefix(name, "_"):
			faults = append(faults,
				fault.Invalid(fault.InvalidRequest, fmt.Sprintf("fields[%d]", i),
					"must be a name of 1 to %d characters that does not begin with _",
					maxNameChars))
		case seen[name]:
			faults = append(faults,
				fault.Invalid(fault.InvalidRequest, fmt.Sprintf("fields[%d]", i),
					"is there already"))
		}
		seen[name] = true
	}
	return faults
}

// fields is POST /api/scraper-simple/preview-from-url.
func (r Resource) fields() *operation.Operation {
	s := r.Services
	return operation.Define(operation.Declaration{
		ID: fieldsID, Routes: operation.Routes("POST /api/scraper-simple/preview-from-url"),
		Group:   group,
		Summary: "Looks for fields on a page by their names",
		Description: "The names are hints: what the page states for machines, its tables and " +
			"lists of labels and values, elements that " +
			"are called so, what a proposal for the page would find, and, where the server has " +
			"one, a language model are asked for " +
			"them; of a list the first item counts. The page is fetched and paid like any " +
			"other; one that says nothing " +
			"of what is asked costs nothing. Nothing is saved.",
		Access: auth.Read, Rate: limits.Preview, Timeout: runs.TrialTimeout,
		Errors: append([]fault.Code{fault.TypeNotRunnable}, runs.TrialErrors...),
	}, func(ctx context.Context, from *operation.Caller, in *fieldsRequest) (Shown, error) {
		began := s.Clock.Now()
		shown := Shown{URL: in.Body.URL, Fields: map[string]any{}}
		schema, err := schemaOf(in.Body.Fields)
		if err != nil {
			return shown, err
		}
		recipe := model.Recipe{Type: model.AIConf, Schema: schema, HiddenData: true}
		if faults := extract.Validate(recipe); len(faults) > 0 {
			return shown, atFault(in.Body.Fields, faults)
		}
		rows, err := runs.Try(ctx, s, from, fieldsID,
			runs.Trial{Source: model.SourcePreviewURL, URL: in.Body.URL, Field: "url",
				Recipe: recipe})
		if err != nil {
			return shown, err
		}
		found := map[string]any{}
		if len(rows) > 0 {
			if err := json.Unmarshal(rows[0], &found); err != nil {
				return shown, fmt.Errorf("row of a preview: %w", err)
			}
		}
		for _, name := range in.Body.Fields {
			shown.Fields[name] = found[name]
		}
		shown.ElapsedMs = s.Clock.Now().Sub(began).Milliseconds()
		return shown, nil
	})
}

// atFault names the fields that no row can have; faults are those of all together.
func atFault(names []string, faults fault.List) fault.List {
	var found fault.List
	for i, name := range names {
		schema, err := schemaOf([]string{name})
		if err == nil && len(extract.Validate(model.Recipe{Type: model.AIConf,
			Schema: schema})) > 0 {
			found = append(found, fault.Invalid(fault.InvalidRequest, fmt.Sprintf("fields[%d]", i),
				"a name must not begin with $ and have no control characters, \" or \\"))
		}
	}
	if len(found) == 0 {
		return faults
	}
	return found
}

// schemaOf is a schema of one thing with properties of any scalar type.
func schemaOf(names []string) ([]byte, error) {
	properties := map[string]any{}
	for _, name := range names {
		properties[name] = map[string]any{"type": []string{"string", "number", "boolean", "null"}}
	}
	return json.Marshal(map[string]any{"type": "object", "properties": properties})
}
