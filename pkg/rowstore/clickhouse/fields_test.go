package clickhouse

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/filter"
)

func TestFields(t *testing.T) {
	of := func(key string, kind uint8, num float64,
		text string) field {
		return field{key, kind, num, text}
	}
	for doc, want := range map[string][]field{
		``:    nil,
		`"a"`: nil,
		`[1]`: nil,
		`{}`:  nil,
		` { "a" : 1 , "b":[ {"]":"}"} ] } `: {of("a", kindNumber, 1, ""),
			of("b", kindOther, 0, "")},
		`{"a":1,"a":"2","":1,"q\"":1}`: {of("a", kindNumericText, 2, "2")},
		`{"a":null,"b":true,"c":false}`: {of("a", kindNull, 0, ""), of("b", kindTrue, 0, ""),
			of("c", kindFalse, 0, "")},
		`{"a":1e400,"b":-0.0,"c":"1e400"}`: {of("a", kindOther, 0, ""), of("b", kindNumber, 0, ""),
			of("c", kindText, 0, "1e400")},
		`{"\u00e4":"\ud83d\udc1f\n"}`: {of("ä", kindText, 0, "🐟\n")},
		`{"a":1`:                      nil,
		`{"a":1,}`:                    nil,
		`{"a":tru}`:                   nil,
		`{"a":"x`:                     nil,
	} {
		if diff := cmp.Diff(want, append([]field(nil), fields(nil, []byte(doc))...),
			cmp.AllowUnexported(field{})); diff != "" {
			t.Errorf("%s: %s", doc, diff)
		}
	}
}

// FuzzFields: a filter sees of a field what package filter sees of the document.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":"x\u0000","c":[{}],"d":null}`,
		`{"a":"\ud800","a":-0}`, "{\"\xff\":\"\xff\"}", `{"a":0123}`,
		`{"a":{"b":"\""}}`, `{"a" 1}`, "{\"a\":\"\t\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got := map[string]field{}
		for _, field := range fields(nil, doc) {
			got[field.key] = field
		}
		decoder := json.NewDecoder(strings.NewReader(string(doc)))
		decoder.UseNumber()
		var members map[string]any
		if !json.Valid(doc) || decoder.Decode(&members) != nil {
			return // only documents are stored
		}
		for key, value := range members {
			if !filter.IsField(key) {
				continue
			}
			want := wantField(key, value)
			if diff := cmp.Diff(want, got[key], cmp.AllowUnexported(field{})); diff != "" {
				t.Errorf("%q: %s", doc, diff)
			}
			delete(got, key)
		}
		for key := range got {
			t.Errorf("%q: no field %q", doc, key)
		}
	})
}

func wantField(key string, value any) field {
	f := field{key: key, kind: kindOther}
	switch value := value.(type) {
	case nil:
		f.kind = kindNull
	case bool:
		if f.kind = kindFalse; value {
			f.kind = kindTrue
		}
	case json.Number:
		if n, ok := filter.ParseNumber(value.String()); ok {
			f.kind, f.num = kindNumber, n
		}
	case string:
		f.kind, f.text = kindText, value
		if n, ok := filter.ParseNumber(value); ok {
			f.kind, f.num = kindNumericText, n
		}
	}
	return f
}
