package ingest

import (
	"archive/zip"
	"io"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/work"
)

// javaSheet returns a spreadsheet of products with a number each, spelled as Java spells doubles.
func javaSheet(t *testing.T, column string, rows ...string) string {
	t.Helper()
	var file, sheet strings.Builder
	sheet.WriteString(`<worksheet><sheetData><row><c t="str"><v>EAN</v></c><c t="str"><v>` + column +
		`</v></c></row>`)
	for ; len(rows) > 0; rows = rows[2:] {
		sheet.WriteString(`<row><c><v>` + rows[0] + `</v></c><c t="str"><v>` + rows[1] +
			`</v></c></row>`)
	}
	sheet.WriteString(`</sheetData></worksheet>`)
	w := zip.NewWriter(&file)
	for _, part := range [][2]string{
		{"_rels/.rels", `<Relationships><Relationship Id="r" Type="x/officeDocument" ` +
			`Target="book.xml"/></Relationships>`},
		{"book.xml", `<workbook><sheets><sheet id="one"/></sheets></workbook>`},
		{"_rels/book.xml.rels", `<Relationships><Relationship Id="one" Type="x/worksheet" ` +
			`Target="one.xml"/></Relationships>`},
		{"one.xml", sheet.String()},
	} {
		to, err := w.Create(part[0])
		if err == nil {
			_, err = io.WriteString(to, part[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// Numbers of a sheet are the keys of a csv file, and trade numbers, whichever program wrote it.
func TestNumbersOfSheetsAreKeys(t *testing.T) {
	u := newUploaded(t)
	u.whole("csv", "EAN,a\n4006381333931,old\n7,short\n")
	u.protect()
	u.steps(u.send("EAN", "xlsx", javaSheet(t, "b", "4.006381333931E12", "new", "7.0", "seven")))
	rows, _ := u.documents()
	want := []string{`{"EAN":"4006381333931","a":"old","b":"new"}`,
		`{"EAN":"7","a":"short","b":"seven"}`}
	if !slices.Equal(rows, want) {
		t.Errorf("%q", rows)
	}
	u = newUploaded(t)
	catalogue := u.products(`{"id":"pen","ean":"4006381333931"}`, `{"id":"upc","ean":"036000291452"}`)
	u.whole("xlsx", javaSheet(t, "title", "4.006381333931E12", "a", "3.6000291452E10", "b"))
	begun := u.beginMatch(catalogue)
	if end, _ := u.stepMatch(begun.Job, catalogue); end != work.Ended {
		t.Fatal(end)
	}
	if got := u.matched(); got["a"] != "pen, gtin" || got["b"] != "upc, gtin" {
		t.Errorf("matched %v", got)
	}
}
