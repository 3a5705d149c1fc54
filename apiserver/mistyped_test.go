package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofTheProgram matches implementation names, which no answer may contain.
var ofTheProgram = regexp.MustCompile(`\bGo \b|struct field|reflect\b|unmarshal|json: |` +
	`\*?(client|model|api|operation|command|state)\.[A-Z]|\bu?int(8|16|32|64)\b|float64|map\[`)

// wrongs are values of every JSON type, at least one of which is wrong for any member.
var wrongs = []string{`"x"`, `""`, `7`, `-1`, `1.5`, `true`, `null`, `[]`, `{}`, `[[]]`,
	`[null]`, `[7]`, `["x"]`, `[{"x":1}]`, `{"x":[]}`, `{"id":7}`, `"2026-13-45T00:00:00Z"`}

// TestRefusalsSpeakOfTheAPI: whatever the types in a body are, the answer uses the API's terms.
func TestRefusalsSpeakOfTheAPI(t *testing.T) {
	h := newSameness(t)
	sent := 0
	h.operations(func(path, method string, op map[string]any) {
		example, members := h.body(op)
		id := op["operationId"].(string)
		if members == nil {
			return
		}
		parameters, _ := op["parameters"].([]any)
		for _, one := range parameters {
			if p := one.(map[string]any); p["in"] == "path" {
				path = strings.ReplaceAll(path, "{"+p["name"].(string)+"}",
					plainText(p["example"]))
			}
		}
		for _, body := range []string{``, `{`, `[`, `"x"`, `7`, `[]`, `[{}]`, `null`, `{"x"}`,
			`{"x":1,"x":2}`, `{"a":}`, "\xff", `{"unknown":1}`} {
			h.speaks(t, id, method, path, body, "")
			sent++
		}
		whole, _ := example.(map[string]any)
		slices.Sort(members)
		for _, member := range members {
			for _, wrong := range wrongs {
				body := maps.Clone(whole)
				if body == nil {
					body = map[string]any{}
				}
				body[member] = json.RawMessage(wrong)
				text, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				h.speaks(t, id, method, path, string(text), member)
				sent++
			}
		}
	})
	t.Logf("%d bodies", sent)
	if sent < 2_000 {
		t.Errorf("only %d bodies are sent", sent)
	}
}

// speaks sends a body and checks that the answer uses the API's terms.
func (h *sameness) speaks(t *testing.T, id, method, path, body, member string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), h.url+path,
		bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+h.secrets[h.access[id]])
	request.Header.Set("Idempotency-Key", id+member+body[:min(len(body), 9)])
	request.Header.Set("Content-Type", "application/json")
	answer, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		t.Fatalf("%s %s: %v", id, body, err)
	}
	if answer.StatusCode < 400 {
		return
	}
	if answer.StatusCode == http.StatusInternalServerError {
		t.Errorf("%s %s: %d %s", id, body, answer.StatusCode, text)
	}
	if found := ofTheProgram.FindString(string(text)); found != "" {
		t.Errorf("%s %.200s is answered %.400s, which says %q", id, body, text, found)
	}
}
