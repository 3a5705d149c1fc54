package contacts

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSpeaksOfWalls: the pre-check never rejects what the expression matches.
func TestSpeaksOfWalls(t *testing.T) {
	pieces := []string{"cookie", "Cookies", "COOKIE", "Coo\u212aie", "con\u017fent", "consent",
		"Consentement", "einwilligung", "zustimmen", "zgody",
		"souhlas", "toestemming", "consentimiento", " ", "x", "Ä", "\xff"}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(rt, "text"), "")
		if found := len(wallWords.FindAllStringIndex(text, 3)); found > 1 && !speaksOfWalls(text) {
			rt.Fatalf("%q has %d", text, found)
		}
	})
}
