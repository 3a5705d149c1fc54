package apiserver

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// description is the part of testdata/openapi.json that tests read.
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

// TestFormatsAreDescribed: an answer whose format can be chosen describes each format.
func TestFormatsAreDescribed(t *testing.T) {
	seen := 0
	for path, methods := range readDescription(t).Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				if p.Name != "format" || strings.Contains(p.Description, "With a streamed body") {
					continue
				}
				if _, answers := op.Responses["200"]; !answers {
					continue // another call gives the answer
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

// TestEveryCallMayBeTooLong: every operation may answer 408 and 431, since headers are bounded.
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

// TestParametersAreNeverNull: a parameter is text and cannot be null. Callers who follow the
// description would send null.
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
