package apiserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// problem is the part of a refusal that tests read.
type problem struct {
	Status int
	Code   string
	Errors []struct{ Field string }
}

// ask calls an operation and returns the refusal.
func (h *sameness) ask(t *testing.T, id, method, address string, body any) (said problem) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method),
		h.url+address, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+h.secrets[h.access[id]])
	request.Header.Set("Idempotency-Key", address)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") {
		if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
			t.Fatalf("%s %s: %v", method, address, err)
		}
	}
	return said
}

// operations visits all operations of the description, each with its path and method.
func (h *sameness) operations(visit func(path, method string, op map[string]any)) {
	for _, path := range slices.Sorted(maps.Keys(h.paths)) {
		methods := h.paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			visit(path, method, methods[method].(map[string]any))
		}
	}
}

// body returns the example of an operation's JSON body and the names of its members.
func (h *sameness) body(op map[string]any) (example any, members []string) {
	request, _ := op["requestBody"].(map[string]any)
	content, _ := request["content"].(map[string]any)
	whole, isJSON := content["application/json"].(map[string]any)
	if !isJSON {
		return nil, nil
	}
	properties, _ := h.resolve(whole["schema"])["properties"].(map[string]any)
	return whole["example"], slices.Collect(maps.Keys(properties))
}

var pathID = regexp.MustCompile(`\{\w*[iI]d\}`)

// TestRefusalsNameWhatWasSent: a path whose ids do not exist is refused at a field that the call
// has. An id of zeros is an unknown id, not a missing one.
func TestRefusalsNameWhatWasSent(t *testing.T) {
	h := newSameness(t)
	seen := 0
	h.operations(func(path, method string, op map[string]any) {
		if !pathID.MatchString(path) {
			return
		}
		body, names := h.body(op)
		address := path
		parameters, _ := op["parameters"].([]any)
		for _, one := range parameters {
			p := one.(map[string]any)
			name := p["name"].(string)
			names = append(names, name)
			if p["in"] == "path" && !pathID.MatchString("{"+name+"}") {
				address = strings.ReplaceAll(address, "{"+name+"}", plainText(p["example"]))
			}
		}
		id := op["operationId"].(string)
		unknown := h.ask(t, id, method,
			pathID.ReplaceAllString(address, strings.Repeat("a", 24)), body)
		zero := h.ask(t, id, method,
			pathID.ReplaceAllString(address, strings.Repeat("0", 24)), body)
		if zero.Status != unknown.Status || zero.Code != unknown.Code {
			t.Errorf("%s: zeros are %d %s, another unknown id %d %s", id, zero.Status, zero.Code,
				unknown.Status, unknown.Code)
		}
		for _, one := range append(zero.Errors, unknown.Errors...) {
			root, _, _ := strings.Cut(one.Field, ".")
			if root, _, _ = strings.Cut(root, "["); root != "" && !slices.Contains(names, root) {
				t.Errorf("%s: there is no %s among %v", id, one.Field, names)
			}
			seen++
		}
	})
	if seen < 80 {
		t.Errorf("only %d refusals are seen", seen)
	}
}

// TestSpansDoNotEndBeforeTheyBegin: every list with from and to refuses a to that comes first
// (decision 43).
func TestSpansDoNotEndBeforeTheyBegin(t *testing.T) {
	h := newSameness(t)
	spans := 0
	h.operations(func(path, method string, op map[string]any) {
		patterns := map[string]string{}
		parameters, _ := op["parameters"].([]any)
		for _, one := range parameters {
			p := one.(map[string]any)
			patterns[p["name"].(string)], _ = h.resolve(p["schema"])["pattern"].(string)
		}
		first, err := regexp.Compile(patterns["from"])
		if err != nil {
			t.Fatal(err)
		}
		clock := "T00:00:00Z"
		if !first.MatchString("2026-02-28" + clock) {
			clock = "" // days, not times
		}
		if patterns["to"] == "" || !first.MatchString("2026-02-28"+clock) {
			return // from and to are runs
		}
		address := pathID.ReplaceAllString(path, strings.Repeat("a", 24)) +
			"?from=2026-02-28" + clock + "&to=2026-02-27" + clock
		said := h.ask(t, op["operationId"].(string), method, address, nil)
		if len(said.Errors) == 0 || said.Errors[0].Field != "from" {
			t.Errorf("%s is not refused: %+v", address, said)
		}
		spans++
	})
	if spans < 12 {
		t.Errorf("only %d spans are seen", spans)
	}
}
