package rows

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAppendString: every string comes out as encoding/json writes it, whatever its bytes.
func TestAppendString(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.OneOf(rapid.String(),
			rapid.SampledFrom([]string{"\xff", "\xe2\x80", "\u2028", "\u2029", "\ufffd", "\x00",
				"\x1f", "\x7f", "\"", "\\", "\n\r\t"}),
		)).Draw(rt, "pieces"), "")
		var got, want string
		if err := json.Unmarshal(appendString(nil, []byte(s)), &got); err != nil {
			rt.Fatal(err)
		}
		encoded, _ := json.Marshal(s) // a string always marshals
		if err := json.Unmarshal(encoded, &want); err != nil {
			rt.Fatal(err)
		}
		if got != want {
			rt.Fatalf("%q: got %q, want %q", s, got, want)
		}
	})
}
