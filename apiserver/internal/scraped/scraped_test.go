package scraped_test

import (
	"encoding/json"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/scraped"
)

// TestNamesAreCleaned: a page may also choose a member's name. A cleaned name hides nothing, is not
// long, and never becomes one of the server's.
func TestNamesAreCleaned(t *testing.T) {
	const row = `{"_sourceUrl":"http://a.test/","a\u202eb":"x","\u202e_sourceUrl":"y",` +
		`"n":{"c\u0007d":{"\u2066_e":1}}}`
	const want = `{"_sourceUrl":"http://a.test/",` +
		`"ab":{"type":"scraped","content":"x","origin":"http://a.test/","truncated":false},` +
		`"._sourceUrl":{"type":"scraped","content":"y","origin":"http://a.test/","truncated":false},` +
		`"n":{"cd":{"._e":1}}}`
	var out strings.Builder
	if err := scraped.WriteRow(&out, json.RawMessage(row), ""); err != nil || out.String() != want {
		t.Errorf("%s, %v\nwant %s", out.String(), err, want)
	}
	out.Reset()
	long, err := json.Marshal(map[string]int{strings.Repeat("ä", 300): 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := scraped.WriteValue(&out, long, ""); err != nil ||
		out.String() != `{"`+strings.Repeat("ä", 256)+`":1}` {
		t.Errorf("%s, %v", out.String(), err)
	}
}
