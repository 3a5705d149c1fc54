package apiserver

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// description is what tests read of testdata/openapi.json.
type description struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name        string
			Description string
			Schema      struct {
				Type any
				Enum []string
			}
		}
		Responses map[string]struct{ Content map[string]any }
	}
}

func readDescription(t *testing.T) (read description) {
	t.Helper()
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestFormatsAreDescribed: who may choose the format of an answer finds each one described.
func TestFormatsAreDescribed(t *testing.T) {
	seen := 0
	for path, methods := range readDescription(t).Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				if p.Name != "format" || strings.Contains(p.Description, "With a streamed body") {
					continue
				}
				if _, answers := op.Responses["200"]; !answers {
					continue // the answer comes by another call
				}
				seen++
				if all := op.Responses["200"].Content; len(all) < len(p.Schema.Enum) {
					t.Errorf("%s %s: %d media types for the formats %v", method, path, len(all),
						p.Schema.Enum)
				}
			}
		}
	}
	if seen < 4 {
		t.Errorf("only %d operations with formats are found", seen)
	}
}

// TestEveryCallMayBeTooLong: address and header lines are bounded, and timed, whatever is asked.
func TestEveryCallMayBeTooLong(t *testing.T) {
	for path, methods := range readDescription(t).Paths {
		for method, op := range methods {
			for _, status := range []string{"408", "431"} {
				if op.Responses[status].Content == nil {
					t.Errorf("%s %s does not say that it may answer %s", method, path, status)
				}
			}
		}
	}
}

// TestParametersAreNeverNull: a parameter is text, which null is not. Who makes calls by the
// description would send it.
func TestParametersAreNeverNull(t *testing.T) {
	seen := 0
	for path, methods := range readDescription(t).Paths {
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
