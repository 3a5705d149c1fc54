package configfile

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzConfig(f *testing.F) {
	f.Add("data = ./data\n# c\nfield = \"a=b # c\" # d\nfield=x=y\n")
	f.Add("= 1")
	f.Add("a = \"")
	f.Fuzz(func(t *testing.T, content string) {
		c, err := parse("f", strings.NewReader(content))
		if err != nil {
			return
		}
		var again strings.Builder
		for _, key := range c.keys {
			for _, value := range c.flag[key] {
				if strings.ContainsAny(value, `"`) {
					return // a quote inside a value cannot be written inside quotes
				}
				fmt.Fprintf(&again, "%s = \"%s\"\n", key, value)
			}
		}
		d, err := parse("f", strings.NewReader(again.String()))
		if err != nil || !maps.EqualFunc(c.flag, d.flag,
			func(a, b []string) bool { return cmp.Equal(a, b) }) {
			t.Errorf("%q became %q: %v", content, again.String(), err)
		}
	})
}
