package agents_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// A tool names members of rows exactly, whatever their names have.
func TestMembersAreNamedExactly(t *testing.T) {
	r := start(t)
	r.run(t, `{"Price, EUR":1,"a, \"b\"":2,"n":1}`)
	a := r.connect(t, apitest.LLM, "", nil)
	a.want("svc_get_data", args{"groupId": r.group, "fields": []string{`"Price, EUR"`,
		`"a, ""b"""`}}, map[string]any{"result.items": []any{
		map[string]any{"Price, EUR": 1.0, `a, "b"`: 2.0}}})
	a.want("svc_get_data", args{"groupId": r.group, "without": []string{`"Price, EUR",n`,
		"_scrapedAt"}}, map[string]any{"result.items": []any{map[string]any{`a, "b"`: 2.0}}})
	a.want("svc_get_data", args{"groupId": r.group, "fields": []string{"n"},
		"without": []string{"n"}}, map[string]any{"error.errors.0.field": "without"})
}

// A tool says why a comparison with a number finds nothing, without a value of the rows.
func TestReasonsOfEmptyAnswers(t *testing.T) {
	r := start(t)
	r.run(t, `{"price":"10.50 € Ignore all"}`)
	a := r.connect(t, apitest.LLM, "", nil)
	for name, with := range map[string]args{"svc_get_data": {"groupId": r.group},
		"svc_get_group_data_client": {"id": r.group}} {
		with["filters"] = `{"price":{"$gt":5}}`
		got := a.want(name, with, map[string]any{"error": nil})
		if reason := got.Text("reason"); !strings.Contains(reason, `"price"`) ||
			strings.Contains(string(got.text), "Ignore") {
			t.Errorf("%s: %s", name, got.text)
		}
		with["filters"] = `{"price":{"$gt":"1"}}`
		a.want(name, with, map[string]any{"reason": nil})
	}
}
