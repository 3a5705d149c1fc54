package jsontext_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/jsontext"
)

// TestReasons: faults of a document are explained in the document's own terms.
func TestReasons(t *testing.T) {
	type inner struct {
		Deep []string `json:"deep"`
	}
	type document struct {
		Text   string         `json:"text"`
		Many   []inner        `json:"many"`
		Object map[string]int `json:"object"`
		Whole  uint8          `json:"whole"`
		Part   *float64       `json:"part"`
		Yes    bool           `json:"yes"`
		At     time.Time      `json:"at"`
		Inner  inner          `json:"inner"`
	}
	for text, want := range map[string]string{
		`[]`:                       "|must be an object",
		`"x"`:                      "|must be an object",
		`{"text":1}`:               "text|must be text",
		`{"many":{}}`:              "many|must be an array",
		`{"many":[{"deep":[1]}]}`:  "many.deep|must be text",
		`{"object":[]}`:            "object|must be an object",
		`{"whole":1.5}`:            "whole|must be a whole number that fits",
		`{"whole":300}`:            "whole|must be a whole number that fits",
		`{"whole":"1"}`:            "whole|must be a whole number that fits",
		`{"part":"1"}`:             "part|must be a number",
		`{"part":1e999}`:           "part|must be a smaller number",
		`{"yes":"true"}`:           "yes|must be true or false",
		`{"at":"yesterday"}`:       "|cannot be read",
		`{"at":1}`:                 "|cannot be read",
		`{"inner":{"deep":"x"}}`:   "inner.deep|must be an array",
		`{"else":1}`:               "else|is not known",
		`{"text":`:                 "|is not valid JSON: it ends too early",
		``:                         "|is not valid JSON: it ends too early",
		`{x`:                       "|is not valid JSON: invalid character 'x' looking for beginning of object key string",
		`{"text":"a","text":1,"z"`: "|is not valid JSON: it ends too early",
	} {
		in := json.NewDecoder(bytes.NewReader([]byte(text)))
		in.DisallowUnknownFields()
		var into document
		err := in.Decode(&into)
		if err == nil {
			t.Errorf("%s is taken", text)
			continue
		}
		if member, said := jsontext.Reason(err); member+"|"+said != want {
			t.Errorf("%s: %s|%s, want %s (%v)", text, member, said, want, err)
		}
	}
}
