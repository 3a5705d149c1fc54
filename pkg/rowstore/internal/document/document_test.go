package document

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	for doc, want := range map[string][]string{
		``:                                  nil,
		`"a"`:                               nil,
		`[1]`:                               nil,
		`{}`:                                {"whole"},
		` { "a" : 1 , "b":[ {"]":"}"} ] } `: {"a", `1`, "b", `[ {"]":"}"} ]`, "whole"},
		`{"a":"\"","a":{"}":"\\"}}`:         {"a", `"\""`, "a", `{"}":"\\"}`, "whole"},
		`{"\u00e4":true,"":null}`:           {"ä", `true`, "", `null`, "whole"},
		`{"a":1`:                            {"a", `1`},
		`{"a":1,}`:                          {"a", `1`},
		`{"a":}`:                            nil,
		`{"a" 1}`:                           nil,
		`{a:1}`:                             nil,
		`{"a":"x`:                           nil,
		`{"a":"x\`:                          nil,
		`{"a":[1`:                           nil,
	} {
		for name, m := range map[string]Members{"Of": Of(doc), "AllOf": AllOf(doc)} {
			var got []string
			for m.Next() {
				got = append(got, m.Key, m.Value)
			}
			if m.Whole() {
				got = append(got, "whole")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: %s", name, doc, diff)
			}
		}
	}
}

func TestFind(t *testing.T) {
	const doc = `{"a":1,"b":{"a":2},"a":"3"}`
	if value, found := Find(doc, "a"); value != `"3"` || !found {
		t.Errorf("the last one counts, not %s", value)
	}
	if _, found := Find(doc, "c"); found {
		t.Error("found what is not there")
	}
}

// FuzzMembers: Members finds what encoding/json finds.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":"x\u0000","c":[{}],"d":null}`,
		`{"a":"\ud800","a":-0}`, "{\"\xff\":\"\xff\"}", `{"a":0123}`,
		`{"a":{"b":"\""}}`, `{"a" 1}`, "{\"a\":\"\t\"}", `{"a":"\\\\"}`, `{"a":"x\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		got := map[string]any{}
		m := Of(doc)
		for m.Next() {
			got[m.Key] = m.Value
		}
		var want map[string]json.RawMessage
		if !json.Valid([]byte(doc)) ||
			json.NewDecoder(strings.NewReader(doc)).Decode(&want) != nil || want == nil {
			return // only documents are stored
		}
		if !m.Whole() || len(got) != len(want) {
			t.Fatalf("%q: %v, want %v", doc, got, want)
		}
		goAlong(t, doc)
		for key, value := range want {
			if got[key] != string(value) {
				t.Errorf("%q: %q is %v, want %s", doc, key, got[key], value)
			}
			var text string
			if value[0] == '"' && json.Unmarshal(value, &text) == nil {
				if decoded, ok := Text(string(value)); !ok || decoded != text {
					t.Errorf("%q: %q is %q, want %q", doc, key, decoded, text)
				}
			}
		}
	})
}

// goAlong iterates over a document with its own keys as written, and with those of another
// document.
func goAlong(t *testing.T, doc string) {
	t.Helper()
	for _, other := range []string{doc, `{"a":1,"b":2,"\u00e4":3,"b\"":4}`} {
		var written []string
		for m := Of(other); m.Next(); {
			written = append(written, m.Written())
		}
		m, along := Of(doc), AllOf(doc)
		for i := 0; m.Next(); i++ {
			if i == len(written) || !along.NextAs(written[i]) {
				along.Next()
			} else if key, _ := Text(strings.TrimRight(written[i], ": \t\r\n")); key != m.Key {
				t.Errorf("%q: %q is gone along as %q", doc, m.Key, key)
			}
			if along.Value != m.Value || along.Written() != m.Written() {
				t.Fatalf("%q: %q is %s, want %s", doc, m.Key, along.Value, m.Value)
			}
			text, plain, ok := along.Text()
			if want, isText := Text(m.Value); text != want || ok != isText ||
				plain && strings.ContainsAny(text, "\"\\\n\r") {
				t.Errorf("%q: %s is %q (%v, %v), want %q", doc, m.Value, text, plain, ok, want)
			}
		}
		if along.Next() || along.Whole() != m.Whole() {
			t.Errorf("%q: it goes on behind the end", doc)
		}
	}
}
