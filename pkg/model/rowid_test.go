package model_test

import (
	"encoding/json"
	"math"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func TestRowID(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []model.RowID{{}, {Job: ids.ID{1}}, {Unit: model.Unit{Seq: 1}},
		{Unit: model.Unit{Page: 1}}, {Place: 1}, {Place: 999_999},
		{Job: ids.ID{255, 11: 255}, Place: math.MaxUint32,
			Unit: model.Unit{Seq: math.MaxInt32, Page: math.MaxUint32}}} {
		text := id.String()
		var got model.RowID
		if err := got.UnmarshalText([]byte(text)); err != nil || got != id || seen[text] ||
			len(text) > model.MaxRowIDText {
			t.Errorf("%+v is %q, and that is %+v: %v", id, text, got, err)
		}
		if quoted, err := json.Marshal(id); err != nil || string(quoted) != `"`+text+`"` {
			t.Errorf("%s: %v", quoted, err)
		}
		seen[text] = true
	}
	for _, text := range []string{"", "x", "AAAA", model.RowID{}.String() + "AA",
		"AAAAAAAAAAAAAAAAgAAAAA", // a zero in two bytes
		"AAAAAAAAAAAAAAAAgICAgAgAAA", "AAAAAAAAAAAAAAAA////////AAA",
		"68e5b1c2d3f4a5b6c7d8e9f0"} {
		var got model.RowID
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// FuzzRowID: an id has exactly one text.
func FuzzRowID(f *testing.F) {
	f.Add([]byte(model.RowID{Job: ids.ID{1}, Place: 300}.String()))
	f.Fuzz(func(t *testing.T, text []byte) {
		var id model.RowID
		if id.UnmarshalText(text) == nil && id.String() != string(text) {
			t.Errorf("%q is %s, too", text, id)
		}
	})
}
