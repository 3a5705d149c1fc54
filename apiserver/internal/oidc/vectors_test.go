package oidc

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// vectorGroup is the tests with one key set.
type vectorGroup struct {
	File    string            `json:"file"`
	Comment string            `json:"comment"`
	Keys    []json.RawMessage `json:"keys"`
	Tests   []struct {
		ID      int    `json:"tcId"`
		Comment string `json:"comment"`
		JWS     string `json:"jws"`
		Result  string `json:"result"`
	} `json:"tests"`
}

// Exactly those of Wycheproof's signatures are accepted that are valid and use an algorithm of
// decision 31.
func TestWycheproof(t *testing.T) {
	data, err := os.ReadFile("testdata/wycheproof/jws.json")
	if err != nil {
		t.Fatal(err)
	}
	var groups []vectorGroup
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for _, group := range groups {
		document := append([]byte(`{"keys":[`), bytes.Join(raw(group.Keys), []byte(","))...)
		keys, keysErr := parseKeys(append(document, ']', '}'))
		for _, vector := range group.Tests {
			token, err := parse(vector.JWS)
			if err == nil && keysErr == nil {
				err = keys.verify(token)
			}
			ours := err == nil && keysErr == nil
			want := vector.Result == "valid" && group.isOurs(t)
			if ours != want {
				t.Errorf("%s %d, %s, %s: accepted %v, want %v: %v, %v", group.File, vector.ID,
					group.Comment, vector.Comment, ours, want, keysErr, err)
			}
			if ours {
				accepted++
			} else {
				refused++
			}
		}
	}
	if accepted < 10 || refused < 180 {
		t.Errorf("only %d vectors are accepted and %d refused: the selection is gone", accepted,
			refused)
	}
}

func raw(all []json.RawMessage) (texts [][]byte) {
	for _, text := range all {
		texts = append(texts, text)
	}
	return texts
}

// isOurs says whether the group's key names an accepted algorithm.
func (g *vectorGroup) isOurs(t *testing.T) bool {
	var named struct {
		Algorithm jose.SignatureAlgorithm `json:"alg"`
	}
	if err := json.Unmarshal(g.Keys[0], &named); err != nil {
		t.Fatal(err)
	}
	return slices.Contains(algorithms[:], named.Algorithm)
}
