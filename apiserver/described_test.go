package apiserver

import (
	"encoding/json"
	"os"
	"testing"
)

// TestParametersAreNeverNull: a parameter is text, which null is not. Who makes calls by the
// description would send it.
func TestParametersAreNeverNull(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct{ Type any }
			}
		}
	}
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				seen++
				if _, several := p.Schema.Type.([]any); several {
					t.Errorf("%s %s: %s is of %v", method, path, p.Name, p.Schema.Type)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d parameters are found", seen)
	}
}
