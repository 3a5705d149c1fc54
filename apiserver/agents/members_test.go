package agents_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
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

// A page chooses names that look alike, or are an order to a model. Each name is shown once, hides
// nothing, and finds its member if it is asked for as it was shown.
func TestNamesOfPagesAreUsedAsShown(t *testing.T) {
	const page = `{"@type":"Product","name":"Lamp","price":"99.00","pri\u202ece":"1.00",` +
		`"\u2066offers":[{"price":"99.00","pri\u202ece":"1.00"}]," _jobId":"x","weight \u202a":2}`
	reader, err := extract.Compile(model.Recipe{Type: model.ApplicationLDJSON})
	if err != nil {
		t.Fatal(err)
	}
	made, err := reader.Extract(extract.Page{URL: "https://shop.test/",
		ContentType: "application/ld+json", Body: []byte(page)})
	if err != nil || len(made.Rows) != 1 {
		t.Fatal(made, err)
	}
	r := start(t)
	r.run(t, string(made.Rows[0]))
	a := r.connect(t, apitest.LLM, "", nil)
	got := a.want("svc_get_data", args{"groupId": r.group}, map[string]any{
		"result.items.0.price.content": "99.00", "result.items.0.offers_price.content": "99.00"})
	names := namesIn(t, got.text)
	if !slices.Contains(names, "weight") || bytes.ContainsAny(got.text, "\u202a\u202e\u2066") {
		t.Errorf("%s", got.text)
	}
	item, _ := got.At("result.items.0")
	for name, value := range item.(map[string]any) {
		again := a.call("svc_get_data", args{"groupId": r.group, "fields": []string{name}})
		found, _ := again.At("result.items.0")
		if row, is := found.(map[string]any); !is || len(row) != 1 || row[name] == nil {
			t.Errorf("%q is %v as asked for: %s", name, value, again.text)
		}
	}
}

// A row that was stored before names were cleaned shows all its members under names of their own.
func TestOldNamesStayApart(t *testing.T) {
	r := start(t)
	r.run(t, `{"pri\u202ece":"1.00","price":"99.00","\u2066price":"2.00"}`)
	got := r.connect(t, apitest.LLM, "", nil).want("svc_get_data", args{"groupId": r.group},
		map[string]any{"result.items.0.price.content": "99.00"})
	want := []string{"price (cleaned)", "price", "price (cleaned) (2)"}
	if names := namesIn(t, got.text); !slices.Equal(names[:3], want) {
		t.Errorf("%q", names)
	}
}

// namesIn are the names of the members of an answer's rows, in their order. None may come twice.
func namesIn(t *testing.T, answer []byte) (names []string) {
	t.Helper()
	var got struct {
		Result struct{ Items []json.RawMessage }
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	for _, item := range got.Result.Items {
		in := json.NewDecoder(bytes.NewReader(item))
		if _, err := in.Token(); err != nil {
			t.Fatal(err)
		}
		for in.More() {
			name, err := in.Token()
			var value json.RawMessage
			if err != nil || in.Decode(&value) != nil {
				t.Fatalf("%s", item)
			}
			if slices.Contains(names, name.(string)) {
				t.Errorf("%q comes twice in %s", name, item)
			}
			names = append(names, name.(string))
		}
	}
	return names
}
