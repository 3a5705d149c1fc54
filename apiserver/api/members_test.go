package api_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/pkg/fault"
)

func TestReadMembers(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   []string
	}{
		{nil, nil},
		{[]string{"", ","}, nil},
		{[]string{"name,x", "n,n"}, []string{"name", "x", "n"}},
		{[]string{`"Price, EUR"`}, []string{"Price, EUR"}},
		{[]string{`a,"Price, EUR",b`}, []string{"a", "Price, EUR", "b"}},
		{[]string{`a, "b, c" , d`}, []string{"a", "b, c", " d"}},
		{[]string{`"a, ""b"""`}, []string{`a, "b"`}},
		{[]string{`""`, `"""",x`}, []string{`"`, "x"}},
		{[]string{`5" disk,7"`}, []string{`5" disk`, `7"`}},
		{[]string{"\"a\r\nb\",\"a\nb\""}, []string{"a\r\nb", "a\nb"}},
	} {
		got, err := api.ReadMembers(c.values, "fields", 3)
		if err != nil || !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%q: %q, %v, want %q", c.values, got, err, c.want)
		}
	}
	for _, values := range [][]string{{`"`}, {`"a`}, {`x,"a""`}, {`"a"b`}, {`"a" b,c`},
		{"a,b,c,d"}, {"a,b", "c,d"}} {
		_, err := api.ReadMembers(values, "fields", 3)
		if fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%q: %v", values, err)
		}
	}
	// What follows one name too many is not looked at.
	_, err := api.ReadMembers([]string{"a,b,c,d", `"`}, "fields", 3)
	if err == nil || !strings.Contains(err.Error(), "at most 3") {
		t.Error(err)
	}
}

// FuzzReadMembers: what a csv writer quotes names exactly the members that it wrote.
func FuzzReadMembers(f *testing.F) {
	f.Add("Price, EUR", `a, "b"`)
	f.Add(" x", "a\nb")
	f.Fuzz(func(t *testing.T, a, b string) {
		var text strings.Builder
		w := csv.NewWriter(&text)
		if err := w.Write([]string{a, b}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		names, err := api.SplitNames(strings.TrimSuffix(text.String(), "\n"), "fields")
		if err != nil || !slices.Equal(names, []string{a, b}) {
			t.Errorf("%q, %q: %q, %v", a, b, names, err)
		}
	})
}
