package api

import (
	"context"
	"errors"
	"strings"
	"testing"
)

type exportedItem struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Note  *string  `json:"note,omitempty"`
	Parts []string `json:"parts"`
}

// TestExport: parts form one table, or one object per line, and an error ends the export.
func TestExport(t *testing.T) {
	note := "a \"b\",\nc"
	parts := [][]exportedItem{
		{{Name: "=1+1", Count: -2, Parts: []string{"x", "y"}}, {Name: "-5", Note: &note}},
		{}, {{Name: "last"}}, nil}
	for format, want := range map[string]string{
		"jsonl": `{"name":"=1+1","count":-2,"parts":["x","y"]}` + "\n" +
			`{"name":"-5","count":0,"note":"a \"b\",\nc","parts":null}` + "\n" +
			`{"name":"last","count":0,"parts":null}` + "\n",
		"csv": "name,count,note,parts\n'=1+1,-2,,\"[\"\"x\"\",\"\"y\"\"]\"\n" +
			"-5,0,\"a \"\"b\"\",\nc\",\nlast,0,,\n"} {
		n := -1
		answer := Export[exportedItem, CursorPage[exportedItem]](format,
			func(context.Context) ([]exportedItem, error) { n++; return parts[n], nil })
		var written strings.Builder
		if err := answer.Write(t.Context(), &written); err != nil || written.String() != want {
			t.Errorf("%s, %v:\n%s\nwant\n%s", format, err, written.String(), want)
		}
		failed := errors.New("down")
		answer = Export[exportedItem, CursorPage[exportedItem]](format,
			func(context.Context) ([]exportedItem, error) { return nil, failed })
		if err := answer.Write(t.Context(), &written); !errors.Is(err, failed) {
			t.Errorf("%s ends with %v", format, err)
		}
	}
}
