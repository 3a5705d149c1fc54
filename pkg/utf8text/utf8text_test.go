package utf8text

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type name string

type sample struct {
	Name   name
	List   []string
	Pair   [2]string
	Inner  *sample
	Any    any
	Map    map[string]any
	Bytes  []byte
	Number uint64
	Rows   [][]byte
	hidden string
}

func TestTextIsMendedWhereverItStands(t *testing.T) {
	bad, good := "a\xffb", "a\ufffdb"
	all := cmp.AllowUnexported(sample{})
	make := func(text string) *sample {
		return &sample{Name: name(text), List: []string{"x", text}, Pair: [2]string{text, "y"},
			Inner: &sample{Name: name(text)},
			Any:   []any{map[string]any{"k": text}, 1.5, nil}, Map: map[string]any{text: text},
			Bytes:  []byte("a\xffb"),
			Number: 7, Rows: [][]byte{[]byte("a\xffb")}, hidden: bad}
	}
	value := make(bad)
	if diff := cmp.Diff(make(good), MendText(value), all); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(make(bad), value, all); diff != "" {
		t.Errorf("the value itself has changed: %s", diff)
	}
	if whole := make(good); MendText(whole) != any(whole) {
		t.Error("text that is UTF-8 was copied")
	}
	if MendText(nil) != nil {
		t.Error("nil did not stay")
	}
}

var mended any

// A page's text is nearly always UTF-8, so checking it must cost little.
func BenchmarkWholeText(b *testing.B) {
	value := any(&sample{Name: "a name", List: []string{"x", "y"}, Inner: &sample{Name: "inner"},
		Map: map[string]any{"title": "text", "price": 1.5}})
	b.ReportAllocs()
	for b.Loop() {
		mended = MendText(value)
	}
}

// A cut text is as long as its bound in bytes allows, and has only whole characters.
func TestCutText(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 3, ""}, {"abcd", 4, "abcd"}, {"abcde", 4, "a…"}, {"abcd", 3, "…"},
		{"aé", 3, "aé"}, {"aébc", 4, "a…"}, {"aébc", 5, "aébc"}, {"aébcd", 5, "a…"},
		{"éébcd", 5, "é…"}, {"\xa9\xa9\xa9\xa9", 3, "…"},
	} {
		if got := CutText(c.text, c.most); got != c.want || len(got) > c.most {
			t.Errorf("CutText(%q, %d) is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// A cut name ends with a word, unless one word is most of it.
func TestCutName(t *testing.T) {
	for _, c := range []struct {
		name string
		most int
		want string
	}{
		{"", 4, ""}, {"größe", 5, "größe"}, {"ab cd", 4, "ab"}, {"ab cd", 5, "ab cd"},
		{"abcd ef", 4, "abcd"}, {"abcd_ef", 6, "abcd"}, {"abc- def", 6, "abc"},
		{"a bcdefgh", 6, "a bcde"}, {"äöüäöü", 4, "äöüä"},
	} {
		if got := CutName(c.name, c.most); got != c.want {
			t.Errorf("CutName(%q, %d) is %q, want %q", c.name, c.most, got, c.want)
		}
	}
}
