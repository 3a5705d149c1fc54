package operation

import (
	"encoding/json"
	"reflect"
	"testing"
)

// A default is JSON whatever characters its text has.
func TestDefaultsAreJSON(t *testing.T) {
	for _, text := range []string{"", "plain", `"quoted" \`, "\a\v\x00\x7f", "ä–\u2028😀"} {
		var read string
		written := defaultJSON(reflect.TypeFor[string](), text)
		if err := json.Unmarshal(written, &read); err != nil || read != text {
			t.Errorf("%q is written as %s, which is %q (%v)", text, written, read, err)
		}
	}
}
