package api

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A page of rows encodes itself as encoding/json would. Other pages do not encode themselves.
func TestPageJSON(t *testing.T) {
	next := NewCursor(place{After: 1}, "alice")
	for _, rows := range [][]Row{
		{}, {Row(`{"a":"<&>"}`)},
		{Row(`{}`), Row(`{"b":[1,null]}`)},
	} {
		for _, page := range []interface{ JSON() ([]byte, bool) }{
			NewPage(rows, 41, 1, 20), CursorPage[Row]{Items: rows},
			CursorPage[Row]{Items: rows, NextCursor: &next, HasMore: true},
		} {
			var want bytes.Buffer
			as := json.NewEncoder(&want)
			as.SetEscapeHTML(false)
			if err := as.Encode(page); err != nil {
				t.Fatal(err)
			}
			if got, ok := page.JSON(); !ok || string(got)+"\n" != want.String() {
				t.Errorf("%s, %v\nwant %s", got, ok, &want)
			}
		}
	}
	if text, ok := NewPage([]int{1}, 1, 0, 20).JSON(); ok {
		t.Errorf("a page of numbers: %s", text)
	}
}
