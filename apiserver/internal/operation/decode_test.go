package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type inner struct {
	Name string `json:"name" required:"true" min:"1" max:"3"`
	Kind string `json:"kind" enum:"A,B" default:"A"`
}

type paging struct {
	Page int `query:"page" default:"0" min:"0"`
	Size int `query:"size" default:"20" min:"1" clamp:"50"`
}

type sampleBody struct {
	ID      ids.ID            `json:"id"`
	Count   *int              `json:"count" min:"1"`
	Items   []inner           `json:"items" max:"2"`
	Tags    []string          `json:"tags"`
	Labels  map[string]string `json:"labels"`
	Params  map[string]any    `json:"params"`
	Raw     json.RawMessage   `json:"raw"`
	Flag    bool              `json:"flag"`
	Rate    float64           `json:"rate" max:"10"`
	Stamped string            `json:"stamped" stamped:"true"`
}

type sampleRequest struct {
	ID ids.ID `path:"id"`
	paging
	Only []string   `query:"only" max:"2"`
	When *bool      `query:"when"`
	Body sampleBody `body:"json"`
}

// Validate implements Validator.
func (b *sampleBody) Validate() fault.List {
	if b.Flag && b.Count == nil {
		return fault.List{fault.Invalid(fault.InvalidRequest, "count", "is needed with flag")}
	}
	return nil
}

func decodeSample(t testing.TB, id string, query map[string][]string, body string) (*sampleRequest,
	error) {
	t.Helper()
	r := compileRequest("test", reflect.TypeFor[sampleRequest]())
	value, _, err := r.decode(&incoming{
		segment: func(string) string { return id }, query: query, contentType: "application/json",
		hasBody: true,
		read:    func(int) ([]byte, error) { return []byte(body), nil },
	}, fault.InvalidRequest)
	return value.Interface().(*sampleRequest), err
}

const anID = "0123456789abcdef01234567"

func TestDecodeByteOrderMark(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	got, err := decodeSample(t, anID, nil, mark+`{"tags":["`+mark+`x"]}`)
	if err != nil || len(got.Body.Tags) != 1 || got.Body.Tags[0] != mark+"x" {
		t.Errorf("%v, %v", got, err)
	}
	for _, body := range []string{mark, mark + mark + `{}`, mark + " "} {
		if _, err := decodeSample(t, anID, nil, body); err == nil {
			t.Errorf("%q is a body", body)
		}
	}
}

func TestDecode(t *testing.T) {
	got, err := decodeSample(t, anID,
		map[string][]string{"page": {"3"}, "size": {"900"}, "only": {"a", "b"}, "when": {"true"}},
		`{"id":"`+anID+`","count":null,"items":[{"name":"é","kind":null},{"name":"abc","kind":"B"}],"tags":["x"],"labels":{"a":"b"},
		"params":{"n":1},"raw":{"z":1, "a":2},"rate":1.5,"stamped":["anything"]}`)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := ids.Parse(anID)
	yes := true
	want := &sampleRequest{ID: id, paging: paging{Page: 3, Size: 50}, Only: []string{"a", "b"},
		When: &yes,
		Body: sampleBody{ID: id, Items: []inner{{"é", "A"}, {"abc", "B"}}, Tags: []string{"x"},
			Labels: map[string]string{"a": "b"},
			Params: map[string]any{"n": 1.0}, Raw: json.RawMessage(`{"z":1, "a":2}`), Rate: 1.5}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sampleRequest{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	type q = map[string][]string
	tests := []struct {
		name, id string
		query    q
		body     string
		want     string // "code field" of each fault
	}{
		{"malformed id", "xyz", nil, `{}`, "invalid_id id"},
		{"no id", "", nil, `{}`, "invalid_id id"},
		{"everything at once", "xyz", q{"page": {"-1"}, "siez": {"1"}, "when": {"yes"}},
			`{"id":"1","count":0,"items":[{"nam":1,"name":"toolong","kind":"C"}],"tags":[1],"colour":1,"rate":11}`,
			"invalid_id id, invalid_request page, invalid_request when, unknown_parameter siez, " +
				"invalid_id id, " +
				"invalid_request count, invalid_request items[0].name, invalid_request " +
				"items[0].kind, " +
				"unknown_field items[0].nam, invalid_request tags[0], invalid_request rate, " +
				"unknown_field colour"},
		{"missing", anID, nil, `{"items":[{}]}`, "invalid_request items[0].name"},
		{"null where a value is needed", anID, nil, `{"items":[{"name":null}]}`,
			"invalid_request items[0].name"},
		{"zeros are not no id", anID, q{}, `{"id":"000000000000000000000000"}`, "invalid_id id"},
		{"not UTF-8", anID, nil, "{\"tags\":[\"\xff\"]}", "invalid_body "},
		{"null item", anID, nil, `{"tags":["a",null]}`, "invalid_request tags[1]"},
		{"too many items", anID, nil, `{"items":[{"name":"a"},{"name":"a"},{"name":"a"}]}`,
			"invalid_request items"},
		{"an array without a bound", anID, nil,
			`{"tags":["` + strings.Repeat(`","`, 10_000) + `"]}`, "invalid_request tags"},
		{"too many members", anID, nil, `{` + manyMembers(10_001) + `}`, "invalid_body m10000"},
		{"other case is another name", anID, nil, `{"Flag":true}`, "unknown_field Flag"},
		{"kinds", anID, nil, `{"flag":1,"rate":"1","labels":[],"count":1.5,"items":{}}`,
			"invalid_request count, " +
				"invalid_request items, invalid_request labels, invalid_request flag, " +
				"invalid_request rate"},
		{"twice", anID, nil, `{"flag":true,"flag":false}`, "invalid_body flag"},
		{"twice, deep", anID, nil, `{"params":{"a":[{"b":1,"b":2}]}}`,
			"invalid_body params"},
		{"too large", anID, nil, `{"params":{"a":[1e999]}}`, "invalid_body params"},
		{"not JSON", anID, nil, `{"flag":tru}`, "invalid_body "},
		{"two documents", anID, nil, `{} {}`, "invalid_body "},
		{"nothing", anID, nil, ` `, "invalid_body "},
		{"null", anID, nil, `null`, "invalid_request "},
		{"an array", anID, nil, `[]`, "invalid_request "},
		{"parameter twice", anID, q{"page": {"1", "2"}}, `{}`, "invalid_request page"},
		{"too many repeats", anID, q{"only": {"1", "2", "3"}}, `{}`, "invalid_request only"},
		{"number too large", anID, q{"page": {"99999999999999999999"}}, `{}`,
			"invalid_request page"},
		{"own rule", anID, nil, `{"flag":true}`, "invalid_request count"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := decodeSample(t, test.id, test.query, test.body)
			var list fault.List
			if !errors.As(err, &list) {
				t.Fatalf("want faults, got %v", err)
			}
			var got []string
			for _, f := range list {
				got = append(got, fmt.Sprintf("%s %s", f.Code, f.Field))
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"m%d":1`, i)
	}
	return strings.Join(members, ",")
}

func TestCountItems(t *testing.T) {
	for text, want := range map[string]int{
		`[]`: 0, "[ \n]": 0, `[1]`: 1, `[""]`: 1, `[[]]`: 1, `[{}]`: 1,
		`[[],[1,2],{"a":[1,2],"b":3}]`: 3,
		`["a,b","\",","\\"]`:           3, `[ null , true ]`: 2, `["[","{"]`: 2,
	} {
		if got := countItems([]byte(text)); got != want {
			t.Errorf("%s: %d items, want %d", text, got, want)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	_, err := decodeSample(t, anID, nil, `{"tags":[`+strings.Repeat("1,", 9_000)+`1]}`)
	var list fault.List
	if !errors.As(err, &list) || len(list) != maxProblems {
		t.Errorf("%d faults", len(list))
	}
}

// A body that is accepted decodes to what encoding/json makes of it.
func FuzzDecodeBody(f *testing.F) {
	f.Add(`{"items":[{"name":"a"}],"tags":["x"],"rate":1}`)
	f.Add(`{"params":{"a":[1,{"b":null}]},"raw":[1,2],"count":3}`)
	f.Add(`{"flag":true,"flag":true}`)
	f.Add(`{"labels":{"":"\u0000"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decodeSample(t, anID, nil, text)
		if err != nil {
			return
		}
		want := sampleRequest{}
		if err := json.Unmarshal([]byte(text), &want.Body); err != nil {
			t.Fatalf("%q is accepted, encoding/json says %v", text, err)
		}
		want.Body.Stamped = ""
		for i := range want.Body.Items {
			if want.Body.Items[i].Kind == "" {
				want.Body.Items[i].Kind = "A"
			}
		}
		if diff := cmp.Diff(want.Body, got.Body); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}

// A body is nested at most maxDepth levels deep, in every member. Its object is the first.
func TestDepthOfABody(t *testing.T) {
	deep := func(member string, levels int) string {
		return fmt.Sprintf(`{"%s":{"a":%s1%s}}`, member, strings.Repeat("[", levels-2),
			strings.Repeat("]", levels-2))
	}
	id := "0123456789abcdef01234567"
	if _, err := decodeSample(t, id, nil, deep("params", maxDepth)); err != nil {
		t.Errorf("%d levels: %v", maxDepth, err)
	}
	for _, member := range []string{"params", "raw", "unknown"} {
		_, err := decodeSample(t, id, nil, deep(member, maxDepth+1))
		var refused *fault.Error
		if !errors.As(err, &refused) || refused.Code != fault.InvalidBody ||
			refused.Field != member {
			t.Errorf("%d levels in %s: %v", maxDepth+1, member, err)
		}
	}
}

// JSON in a parameter has the same bounds, whatever type it is decoded into.
func TestDepthOfAParameter(t *testing.T) {
	type request struct {
		Raw    json.RawMessage `query:"raw"`
		Params map[string]any  `query:"params"`
	}
	r := compileRequest("test", reflect.TypeFor[request]())
	decode := func(name, text string) error {
		_, _, err := r.decode(&incoming{query: map[string][]string{name: {text}}},
			fault.InvalidRequest)
		return err
	}
	deep := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	for _, name := range []string{"raw", "params"} {
		if err := decode(name, deep(maxDepth)); err != nil {
			t.Errorf("%d levels in %s: %v", maxDepth, name, err)
		}
		for _, text := range []string{deep(maxDepth + 1), deep(100_000), `{"a":1,"a":2}`, `{`, ``} {
			var refused *fault.Error
			if err := decode(name, text); !errors.As(err, &refused) ||
				refused.Code != fault.InvalidRequest || refused.Field != name {
				t.Errorf("%.40q in %s: %v", text, name, err)
			}
		}
	}
}
