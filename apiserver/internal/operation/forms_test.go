package operation

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
)

// kind is an Enumerated type.
type kind string

// Values implements Enumerated.
func (kind) Values() []string { return []string{"A", "B"} }

type formed struct {
	Line    string            `json:"line" form:"filled-line" max:"5"`
	Field   string            `json:"field" form:"field"`
	Column  string            `json:"column" form:"column" not:"date,jobId"`
	Source  string            `json:"source" form:"named"`
	Agreed  bool              `json:"agreed" must:"true"`
	Amount  int64             `json:"amount" not:"0"`
	Count   uint32            `json:"count"`
	Whole   int64             `json:"whole"`
	Tags    []string          `json:"tags" unique:"true" max:"3" each:"min=1 max=2 code=INVALID_URL"`
	Kinds   []kind            `json:"kinds"`
	Info    map[string]string `json:"info" keys:"max=2 form=filled" each:"max=3"`
	ByKind  map[kind]string   `json:"byKind"`
	Content json.RawMessage   `json:"content" object:"true"`
}

type formedRequest struct {
	Body formed `body:"json"`
}

// A form's parameter that comes twice is refused: choosing one would be a guess.
func TestFormsSayAParameterOnce(t *testing.T) {
	r := compileRequest("test", reflect.TypeFor[struct {
		Body struct {
			Code string `json:"code"`
		} `body:"form"`
	}]())
	for body, refused := range map[string]bool{"": false, "code=a": false, "other=1&other=2": false,
		"code=a&code=b": true, "code=a&code=a": true, "code=&code=": true} {
		_, _, err := r.decode(&incoming{segment: func(string) string { return "" },
			contentType: formType, hasBody: true,
			read: func(int) ([]byte, error) { return []byte(body), nil }}, fault.InvalidRequest)
		if (fault.CodeOf(err) == fault.InvalidRequest) != refused || !refused && err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Each rule in tags is enforced on both sides of its edge.
func TestForms(t *testing.T) {
	r := compileRequest("test", reflect.TypeFor[formedRequest]())
	for body, want := range map[string]string{
		`{"line":"äöüßx"}`: "", `{"line":"abcdef"}`: "line", `{"line":" "}`: "line",
		`{"line":"\u3000"}`: "line", `{"line":"a\u0085"}`: "line", `{"line":" a "}`: "",
		`{"field":"__a b"}`: "", `{"field":"__"}`: "field", `{"field":"_$a"}`: "field",
		`{"field":" "}`: "field", `{"field":" a"}`: "", `{"field":"a\\"}`: "field",
		`{"source":"_a"}`: "", `{"source":"_"}`: "source", `{"source":"\""}`: "",
		`{"column":"a"}`: "", `{"column":"_a"}`: "column", `{"column":"jobId"}`: "column",
		`{"agreed":true,"column":"a"}`: "", `{"column":"a","agreed":false}`: "agreed",
		`{"amount":-1}`: "", `{"amount":0}`: "amount", `{"amount":0.0}`: "amount",
		`{"count":4294967295}`: "", `{"count":4294967296}`: "count", `{"count":-1}`: "count",
		`{"whole":9007199254740991}`: "", `{"whole":9007199254740992}`: "whole",
		`{"whole":-9007199254740991}`: "", `{"whole":-9007199254740992}`: "whole",
		`{"whole":1e3}`: "", `{"whole":1.0}`: "", `{"whole":1.5}`: "whole", `{"whole":1e300}`: "whole",
		`{"tags":["a","bb"]}`: "", `{"tags":["a","a"]}`: "tags[1]", `{"tags":["abc"]}`: "tags[0]",
		`{"tags":["a","b","c","d"]}`: "tags", `{"tags":[""]}`: "tags[0]",
		`{"kinds":["A"]}`: "", `{"kinds":["C"]}`: "kinds[0]",
		`{"info":{"ab":"abc"}}`: "", `{"info":{"abc":"","a":"abcd"}}`: "info.a info.abc",
		`{"info":{" ":""}}`:   "info. ",
		`{"byKind":{"A":""}}`: "", `{"byKind":{"C":""}}`: "byKind.C",
		`{"content":{}}`: "", `{"content":[]}`: "content", `{"content":null}`: "content",
		`{"line":null,"field":null,"amount":null,"tags":null,"info":null}`: "",
	} {
		_, _, err := r.decode(&incoming{segment: func(string) string { return "" },
			contentType: "application/json", hasBody: true,
			read: func(int) ([]byte, error) { return []byte(body), nil }}, fault.InvalidRequest)
		var list fault.List
		errors.As(err, &list)
		var fields []string
		for _, one := range list {
			fields = append(fields, one.Field)
			if strings.HasPrefix(one.Field, "tags[") && one.Code != fault.InvalidURL &&
				!strings.HasSuffix(one.Detail, "already") {
				t.Errorf("%s: the code of an item is %s", body, one.Code)
			}
		}
		slices.Sort(fields)
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("%s: %q is refused, want %q: %v", body, got, want, err)
		}
	}
}
