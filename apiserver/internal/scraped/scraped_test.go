package scraped_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/scraped"
)

// TestNoNameIsShownTwice: a page may choose names that look alike once they are cleaned. An agent
// takes one of two equal names for the other, so none is shown twice, and honest ones stay.
func TestNoNameIsShownTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"price", "pri\u202ece", "\u2066price", "price\u0007", "price (cleaned)",
		"price (cleaned) (2)", "name", "_name", "\u202e_name"}
	for range 2_000 {
		var members, raw []string
		for range 1 + random.IntN(8) {
			name := parts[random.IntN(len(parts))]
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			raw = append(raw, name)
			members = append(members, string(quoted)+`:1`)
		}
		object := "{" + strings.Join(members, ",") + "}"
		for _, row := range []string{object, `{"in":[` + object + `]}`} {
			var out strings.Builder
			if err := scraped.WriteRow(&out, json.RawMessage(row), ""); err != nil {
				t.Fatal(err)
			}
			shown := map[string]bool{}
			for _, name := range regexp.MustCompile(`"[^"]*":1`).FindAllString(out.String(), -1) {
				shown[name] = true
			}
			if len(shown) != len(members) || slices.Contains(raw, "price") != shown[`"price":1`] {
				t.Fatalf("%s becomes %s", row, out.String())
			}
		}
	}
}

// TestManyEqualNames: a page may write any number of names that are equal once they are cut. Each
// is shown under a number of its own, and finding it takes no search through those before.
func TestManyEqualNames(t *testing.T) {
	const count = 50_000
	var object strings.Builder
	long := strings.Repeat("a", 256)
	for n := range count {
		fmt.Fprintf(&object, `,"%s%d":1`, long, n)
	}
	var out strings.Builder
	row := "{" + object.String()[1:] + "}"
	if err := scraped.WriteRow(&out, json.RawMessage(row), ""); err != nil {
		t.Fatal(err)
	}
	var shown map[string]int
	if err := json.Unmarshal([]byte(out.String()), &shown); err != nil || len(shown) != count {
		t.Errorf("%d names of %d, %v", len(shown), count, err)
	}
}

// TestNamesAreCleaned: a page may also choose a member's name. A cleaned name hides nothing, is not
// long, and never becomes one of the server's.
func TestNamesAreCleaned(t *testing.T) {
	const row = `{"_sourceUrl":"http://a.test/","a\u202eb":"x","\u202e_sourceUrl":"y",` +
		`"n":{"c\u0007d":{"\u2066_e":1}}}`
	const want = `{"_sourceUrl":"http://a.test/",` +
		`"ab (cleaned)":{"type":"scraped","content":"x","origin":"http://a.test/","truncated":false},` +
		`"._sourceUrl (cleaned)":{"type":"scraped","content":"y","origin":"http://a.test/",` +
		`"truncated":false},"n":{"cd (cleaned)":{"._e (cleaned)":1}}}`
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
		out.String() != `{"`+strings.Repeat("ä", 256)+` (cleaned)":1}` {
		t.Errorf("%s, %v", out.String(), err)
	}
}
