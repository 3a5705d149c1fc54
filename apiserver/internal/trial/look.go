package trial

import (
	"context"
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Look looks for fields on a page by their names. It returns the values by name, nil for a field
// that the page lacks. maxCharge, in micros, caps the cost; nil: no cap. Faults: Errors,
// type_not_runnable, and invalid_request for names that no row can have.
func (t *Trials) Look(ctx context.Context, from *Caller, url string, names []string,
	maxCharge *int64) (map[string]any, error) {
	schema, err := schemaOf(names)
	if err != nil {
		return nil, err
	}
	recipe := model.Recipe{Type: model.AIConf, Schema: schema, HiddenData: true}
	if faults := extract.Validate(recipe); len(faults) > 0 {
		return nil, atFault(names, faults)
	}
	rows, err := t.try(ctx, from, &launch.Trial{Source: model.SourcePreviewURL, URL: url,
		Field: "url", Recipe: recipe, MaxCharge: maxCharge})
	if err != nil {
		return nil, err
	}
	row := map[string]any{}
	if len(rows) > 0 {
		if err := json.Unmarshal(rows[0], &row); err != nil {
			return nil, fmt.Errorf("row of a preview: %w", err)
		}
	}
	found := map[string]any{}
	for _, name := range names {
		found[name] = row[name]
	}
	return found, nil
}

// atFault reports the names that no row can have. faults are those of all names together.
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

// schemaOf is a schema of an object with these properties, of any scalar type.
func schemaOf(names []string) ([]byte, error) {
	properties := map[string]any{}
	for _, name := range names {
		properties[name] = map[string]any{"type": []string{"string", "number", "boolean", "null"}}
	}
	return json.Marshal(map[string]any{"type": "object", "properties": properties})
}
