package agents_test

import (
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
