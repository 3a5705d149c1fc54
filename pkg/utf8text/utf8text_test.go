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
}

func TestTextIsMendedWhereverItStands(t *testing.T) {
	bad, good := "a\xffb", "a\ufffdb"
	make := func(text string) *sample {
		return &sample{Name: name(text), List: []string{"x", text}, Pair: [2]string{text, "y"},
			Inner: &sample{Name: name(text)},
			Any:   []any{map[string]any{"k": text}, 1.5, nil}, Map: map[string]any{text: text},
			Bytes:  []byte("a\xffb"),
			Number: 7, Rows: [][]byte{[]byte("a\xffb")}}
	}
	value := make(bad)
	if diff := cmp.Diff(make(good), MendText(value)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(make(bad), value); diff != "" {
		t.Errorf("the value itself has changed: %s", diff)
	}
	if whole := make(good); MendText(whole) != any(whole) {
		t.Error("text that is UTF-8 was copied")
	}
	if MendText(nil) != nil {
		t.Error("nil did not stay")
	}
}
