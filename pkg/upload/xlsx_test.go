package upload

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"
)

const (
	rootRels = `<Relationships><Relationship Id="r" Type="x/officeDocument" Target="/xl/book.xml"/></Relationships>`
	bookXML  = `<workbook xmlns:r="r"><sheets><sheet name="B" r:id="two"/><sheet name="A" r:id="one"/></sheets></workbook>`
	bookRels = `<Relationships><Relationship Id="one" Target="sheets/1.xml"/>` +
		`<Relationship Id="two" Target="/xl/sheets/2.xml"/></Relationships>`
)

// archive makes a spreadsheet with additional parts: name, text, name, text.
func archive(t testing.TB, parts ...string) []byte {
	t.Helper()
	return zipped(t, append([]string{"_rels/.rels", rootRels, "xl/book.xml", bookXML,
		"xl/_rels/book.xml.rels", bookRels}, parts...)...)
}

// zipped makes an archive of parts.
func zipped(t testing.TB, parts ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for ; len(parts) > 0; parts = parts[2:] {
		part, err := w.Create(parts[0])
		if err == nil {
			_, err = io.WriteString(part, parts[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sheetOf(rows string) string {
	return "<worksheet><sheetData>" + rows + "</sheetData></worksheet>"
}

// readAll returns the rows of a spreadsheet as JSON, and why it ended, "" at its end.
func readAll(t testing.TB, file []byte) (rows []string, refused string) {
	t.Helper()
	r, err := NewReader(XLSX, bytes.NewReader(file), t.TempDir())
	for err == nil {
		var row Row
		if row, err = r.Next(); err == nil {
			rows = append(rows, string(row.AppendJSON(nil)))
		}
	}
	if r != nil {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return rows, refusal.Reason
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return rows, ""
}

// TestSheetsAsTheyCome reads the forms in which programs write cells.
func TestSheetsAsTheyCome(t *testing.T) {
	rows := `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>b</t></is></c><c t="str"><f>X()</f><v>c</v></c></row>` +
		`<row r="3"><c r="C3" t="b"><v>1</v></c><c r="A3" t="e"><v>#N/A</v></c></row>` +
		`<row><c><v>1E+25</v></c><c t="s"><v>1</v></c><c t="s"><v>2</v></c></row>` +
		`<row><c r="A9" t="inlineStr"><is><t>_x0041_ _x000d_ _xZZ_ _x00</t></is></c></row><row/>` +
		`<row><c t="str"><f>X()</f><v>_x0041_</v></c></row><row><c t="inlineStr"><is><t>` +
		`_xD801__xDC05_ _xd801__x0038_ _x0039__xDC05_ _xD801_ _xD801__xDC0</t></is></c></row>` +
		`<row><c t="inlineStr"><is>` +
		`<r><t>` + strings.Repeat("_x0041_", MaxCell-1) + `</t></r>` +
		`<r><t>b</t></r></is></c></row>`
	texts := `<sst><si><t>a</t></si><si><r><t xml:space="preserve"> b</t></r><r><t>c</t></r><rPh><t>no</t></rPh></si>` +
		`<si><t></t></si></sst>`
	got, refused := readAll(t, archive(t, "xl/sheets/2.xml", sheetOf(rows),
		"xl/sharedStrings.xml", texts, "xl/sheets/1.xml", sheetOf(`<row><c><v>other</v></c></row>`)))
	want := `{"a":"#N/A","c":"1"}|{"a":"1E+25","b":" bc"}|{"a":"A \r _xZZ_ _x00"}|{"a":"A"}|` +
		`{"a":"𐐅 _xd801_8 9_xDC05_ _xD801_ _xD801__xDC0"}|{"a":"` +
		strings.Repeat("A", MaxCell-1) + `b"}`
	if strings.Join(got, "|") != want || refused != "" {
		t.Errorf("read %s, %s", strings.Join(got, "|"), refused)
	}
}

// TestRowsInPieces: elements in a sequence with the same number are one row, within its bounds.
func TestRowsInPieces(t *testing.T) {
	cell := func(row, place, text string) string {
		return `<row` + row + `><c r="` + place + `" t="str"><v>` + text + `</v></c></row>`
	}
	rows := cell(` r="2"`, "A2", "a") + cell(` r="2"`, "B2", "b") + cell(` r="2"`, "C2", "") +
		cell(` r="3"`, "B3", "1") + cell(` r="3"`, "A3", "2") + cell("", "A4", "3") +
		cell(` r="5"`, "A5", "4") + cell("", "A6", "5") + cell(` r="6"`, "B6", "6")
	long := strings.Repeat("x", MaxCell)
	wide := cell(` r="1"`, "A1", "a")
	for n := range MaxRow/MaxCell + 1 {
		wide += cell(` r="7"`, strings.Repeat("A", n/26)+string(rune('A'+n%26))+"7", long)
	}
	for _, c := range []struct{ rows, want, refused string }{
		{rows, `{"a":"2","b":"1"}|{"a":"3"}|{"a":"4"}|{"a":"5","b":"6"}`, ""},
		{cell(` r="1"`, "A1", "a") + `<row r="2"/><row r="2"/>`, "", ""},
		{cell(` r="1"`, "A1", "a") + cell(` r="1"`, "A1", "1") + cell(` r="1"`, "A1", "2"),
			`{"a":"1"}|{"a":"2"}`, ""}, // each row has the same number
		{`<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>` +
			`<row r="2"><c r="A2" t="str"><v>1</v></c><c r="B2" t="str"><v>2</v></c></row>` +
			cell(` r="2"`, "A2", "3") + `<row r="2"><c r="B2" t="str"><v>4</v></c>` +
			`<c r="A2" t="str"><v>5</v></c></row>` + cell(` r="2"`, "B2", "6") +
			cell(` r="3"`, "A3", "7"),
			`{"a":"1","b":"2"}|{"a":"3"}|{"a":"5","b":"4"}|{"b":"6"}|{"a":"7"}`, ""},
		{wide, "", "row 7: it has more than 1000000 bytes"},
		{cell(` r="1"`, "A1", "a") + `<row r="1"><c>`, "", "row 1: it cannot be read: "},
	} {
		got, refused := readAll(t, archive(t, "xl/sheets/2.xml", sheetOf(c.rows)))
		if read := strings.Join(got, "|"); read != c.want ||
			!strings.HasPrefix(refused, c.refused) || c.refused == "" && refused != "" {
			t.Errorf("read %s, %q, want %s, %q", read, refused, c.want, c.refused)
		}
	}
}

// TestNumbersAreSpelledAlike, whichever program wrote them. What is no spelling of a program stays.
func TestNumbersAreSpelledAlike(t *testing.T) {
	for written, want := range map[string]string{
		"7.0": "7", "-7.0": "-7", "0.0": "0", "4.006381333931E12": "4006381333931", // Java
		"3.6000291452E10": "36000291452", "1.23456789E7": "12345678.9", "1.0E-4": "0.0001",
		"9.007199254740991E15": "9007199254740991", "-1.5E7": "-15000000",
		"9.007199254740992E15": "9.007199254740992E15", "1.0E-7": "1.0E-7",
		"19.899999999999999": "19.9", "1.1000000000000001": "1.1", "1E-4": "0.0001", // Excel
		"0.30000000000000004": "0.30000000000000004", "4006381333931": "4006381333931",
		"1E+25": "1E+25", "1E+400": "1E+400", "19.9": "19.9",
		"12345678901234567890": "12345678901234567890", "7.00": "7.00", "19.90": "19.90",
		"007": "007", "007.0": "007.0", "00E1": "00E1", "0x1p3.0": "0x1p3.0", "1.2.0": "1.2.0",
		"Else": "Else",
	} {
		for _, kind := range []string{"", ` t="n"`} {
			rows := `<row><c><v>1.0</v></c></row><row><c` + kind + `><v>` + written + `</v></c></row>`
			got, refused := readAll(t, archive(t, "xl/sheets/2.xml", sheetOf(rows)))
			if !slices.Equal(got, []string{`{"1":"` + want + `"}`}) || refused != "" {
				t.Errorf("%s: %q, %s", written, got, refused)
			}
		}
		rows := `<row><c><v>1</v></c></row><row><c t="str"><v>` + written + `</v></c></row>`
		got, _ := readAll(t, archive(t, "xl/sheets/2.xml", sheetOf(rows)))
		if !slices.Equal(got, []string{`{"1":"` + written + `"}`}) {
			t.Errorf("the text %s: %q", written, got)
		}
	}
}

// TestNamesOfParts: parts are found in the root folder, and if backslashes separate the folders.
func TestNamesOfParts(t *testing.T) {
	const rels, text = `_rels\.rels`, `<sst><si><t>a</t></si><si><t>b</t></si></sst>`
	rows := sheetOf(`<row><c t="s"><v>0</v></c></row><row><c t="s"><v>1</v></c></row>`)
	for name, parts := range map[string][]string{
		"backslashes": {rels, rootRels, `xl\book.xml`, bookXML, `xl\_rels\book.xml.rels`, bookRels,
			`xl\sheets\2.xml`, rows, `xl\SHAREDSTRINGS.XML`, text},
		"root": {"_rels/.rels", strings.ReplaceAll(rootRels, "/xl/", ""), "book.xml", bookXML,
			"_rels/book.xml.rels", strings.ReplaceAll(bookRels, "/xl/", ""),
			"sheets/2.xml", rows, "sharedStrings.xml", text},
		"named texts": {"_rels/.rels", rootRels, "xl/book.xml", bookXML, "xl/old/sharedStrings.xml",
			`<sst/>`, "xl/_rels/book.xml.rels", strings.Replace(bookRels, "</",
				`<Relationship Id="t" Type="x/sharedStrings" Target="my/Texts.xml"/></`, 1),
			"xl/sheets/2.xml", rows, "xl/my/texts.xml", text},
		"texts that are missing": {"_rels/.rels", rootRels, "xl/book.xml", bookXML,
			"xl/_rels/book.xml.rels", strings.Replace(bookRels, "</",
				`<Relationship Id="t" Type="x/sharedStrings" Target="texts.xml"/></`, 1),
			"xl/sheets/2.xml", rows, "xl/sharedStrings.xml", text},
	} {
		got, refused := readAll(t, zipped(t, parts...))
		if !slices.Equal(got, []string{`{"a":"b"}`}) || refused != "" {
			t.Errorf("%s: read %q, %s", name, got, refused)
		}
	}
}

// TestPartsInUTF16: parts may be UTF-16, with a byte order mark or without.
func TestPartsInUTF16(t *testing.T) {
	rows := sheetOf(`<row><c t="s"><v>0</v></c></row><row><c t="s"><v>1</v></c></row>`)
	parts := []string{"_rels/.rels", rootRels, "xl/book.xml", bookXML,
		"xl/_rels/book.xml.rels", bookRels, "xl/sheets/2.xml", rows,
		"xl/sharedStrings.xml", `<sst><si><t>größe</t></si><si><t>𐐅</t></si></sst>`}
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		for _, mark := range []string{"", "\ufeff"} {
			for _, declared := range []string{"", `<?xml version="1.0" encoding="UTF-16"?>`} {
				wide := slices.Clone(parts)
				for i := 1; i < len(wide); i += 2 {
					var text []byte
					for _, code := range utf16.Encode([]rune(mark + declared + parts[i])) {
						text = order.AppendUint16(text, code)
					}
					wide[i] = string(text)
				}
				got, refused := readAll(t, zipped(t, wide...))
				if !slices.Equal(got, []string{`{"größe":"𐐅"}`}) || refused != "" {
					t.Errorf("%v %q %q: read %q, %s", order, mark, declared, got, refused)
				}
			}
		}
	}
	got, refused := readAll(t, archive(t, "xl/sheets/2.xml",
		`<?xml version="1.0" encoding="UTF-16"?>`+rows))
	if refused == "" {
		t.Errorf("UTF-8 that says it is UTF-16: read %q", got)
	}
}

// TestChartsBeforeTheSheet: sheets without cells are passed over, up to a limit.
func TestChartsBeforeTheSheet(t *testing.T) {
	for charts, want := range map[int]string{0: "", 1: "", maxCharts: "",
		maxCharts + 1: "more than 100 charts and macros precede the first sheet"} {
		got, refused := readAll(t, zipped(t, "_rels/.rels", rootRels, "xl/book.xml",
			`<workbook><sheets>`+strings.Repeat(`<sheet id="chart"/>`, charts)+
				`<sheet id="two"/></sheets></workbook>`,
			"xl/_rels/book.xml.rels", `<Relationships>`+
				`<Relationship Id="chart" Type="x/chartsheet" Target="/chart.xml"/>`+
				`<Relationship Id="two" Type="x/worksheet" Target="two.xml"/></Relationships>`,
			"chart.xml", `<chartsheet/>`, "xl/two.xml",
			sheetOf(`<row><c><v>1</v></c></row><row><c><v>2</v></c></row>`)))
		if read := strings.Join(got, ""); refused != want || want == "" && read != `{"1":"2"}` {
			t.Errorf("%d charts: read %s, %q", charts, read, refused)
		}
	}
}

// hostile returns parts of bad spreadsheets by their fault, each after the start of its refusal.
func hostile() map[string][]string {
	const head = `<row><c t="inlineStr"><is><t>a</t></is></c></row>`
	long := strings.Repeat("x", 200_000)
	rows := func(refused, more string) []string {
		return []string{refused, "xl/sheets/2.xml", sheetOf(head + more)}
	}
	shares := func(refused, more, texts string) []string {
		return append(rows(refused, more), "xl/sharedStrings.xml", "<sst>"+texts+"</sst>")
	}
	const broken = "row 2: it cannot be read"
	return map[string][]string{
		"a large part that nobody needs": append(rows("", ""), "xl/media/x",
			strings.Repeat("\x00", 128<<20)),
		"one long text in all columns": shares("row 2: it has more", "<row>"+
			strings.Repeat(`<c t="s"><v>0</v></c>`, 16_384)+"</row>", "<si><t>"+long+"</t></si>"),
		"a text without end": rows(broken, "<row><c><v>"+strings.Repeat("1", 8<<20)),
		"a tag without end":  rows(broken, "<row "+strings.Repeat("a", 8<<20)),
		"deep elements":      rows(broken, strings.Repeat("<row>", 1<<20)),
		"many runs": shares("", "", "<si>"+strings.Repeat("<r><t>"+long+"</t></r>", 100)+
			"</si>"),
		"entities": {broken, "xl/sheets/2.xml", `<!DOCTYPE x [<!ENTITY a "aaaa">]>` +
			sheetOf(head+`<row><c t="inlineStr"><is><t>&a;</t></is></c></row>`)},
		"a column behind the last": rows("the file has more than 500 columns",
			`<row><c r="SG2"><v>1</v></c></row>`),
		"no column":           rows("row 2:", `<row><c r="99"><v>1</v></c></row>`),
		"XFE":                 rows("row 2:", `<row><c r="XFE1"/></row>`),
		"an unknown text":     rows("row 2:", `<row><c t="s"><v>0</v></c></row>`),
		"a row far away":      rows("", `<row r="9000000000000000000"><c/></row>`),
		"a control character": rows(broken, "<row><c><v>\x01</v></c></row>"),
		"no UTF-8":            rows(broken, "<row><c><v>\xff</v></c></row>"),
		"a bare ampersand":    rows(broken, "<row><c><v>a & b</v></c></row>"),
		"a cut sheet":         {broken, "xl/sheets/2.xml", "<worksheet><sheetData>" + head},
		"no sheet":            {"the file is no spreadsheet"},
		"relations without end": {"the file is no spreadsheet", "xl/book.xml", "<workbook>" +
			strings.Repeat(`<sheet id="c"/>`, 99) + "</workbook>", "xl/_rels/book.xml.rels",
			"<Relationships>" + strings.Repeat("<!--"+long+"-->", 20) +
				`<Relationship Id="c" Target="c.xml" Type="a/chartsheet"/></Relationships>`},
	}
}

// TestHostileSheets: no file makes the reader hold more than a row and its bounds. No damaged file
// is taken for a shorter one.
func TestHostileSheets(t *testing.T) {
	for name, parts := range hostile() {
		t.Run(name, func(t *testing.T) {
			file, want := archive(t, parts[1:]...), parts[0]
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			rows, refused := readAll(t, file)
			runtime.ReadMemStats(&after)
			if len(rows) > 0 || !strings.HasPrefix(refused, want) || want == "" && refused != "" {
				t.Errorf("%d rows, %q", len(rows), refused)
			}
			if kept := int64(after.HeapSys) - int64(before.HeapSys); kept > 64<<20 {
				t.Errorf("it took %d MB", kept>>20)
			}
		})
	}
}

// TestEmptySheetsEnd: empty rows and cells are read up to a limit, which values extend.
func TestEmptySheetsEnd(t *testing.T) {
	const head = `<row><c><v>1</v></c></row>`
	for name, c := range map[string]struct {
		rows  string
		count int
		whole bool
	}{
		"rows":      {strings.Repeat("<row/>", 2_000), 0, false},
		"cells":     {"<row>" + strings.Repeat("<c/>", 2_000) + "</row>", 0, false},
		"long tags": {strings.Repeat("<row a='"+strings.Repeat("x", 9_000)+"'/>", 6), 0, false},
		"few rows":  {strings.Repeat("<row/>", 1_000), 0, true},
		"values":    {strings.Repeat(head+strings.Repeat("<row/>", 40), 2_000), 2_000, true},
		"too few":   {head + head + strings.Repeat("<row/>", 2_000), 2, false},
	} {
		file := archive(t, "xl/sheets/2.xml", sheetOf(head+c.rows))
		s, err := openSheet(bytes.NewReader(file), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.part.left = 50_000
		count := -1
		for ; err == nil; count++ {
			_, err = s.Next()
		}
		refusal := (*Refusal)(nil)
		told := errors.As(err, &refusal) && strings.Contains(refusal.Reason, errEmpty.Error())
		if whole := errors.Is(err, io.EOF); whole != c.whole || told == whole || count != c.count {
			t.Errorf("%s: %d rows, %v", name, count, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedSheets: any wrong bit is detected, at least by the archive's checksum.
func TestDamagedSheets(t *testing.T) {
	rows := strings.Repeat(`<row><c t="inlineStr"><is><t>some text</t></is></c></row>`, 100)
	sound := archive(t, "xl/sheets/2.xml", sheetOf(rows))
	want, _ := readAll(t, sound)
	for at := range sound {
		damaged := bytes.Clone(sound)
		damaged[at] ^= 1
		got, refused := readAll(t, damaged)
		if refused == "" && !slices.Equal(got, want) {
			t.Fatalf("byte %d: %d rows of %d, and no word of it", at, len(got), len(want))
		}
	}
}

// TestManyParts: the parts are counted before the directory is read.
func TestManyParts(t *testing.T) {
	var parts []string
	for n := range maxParts {
		parts = append(parts, fmt.Sprint("x", n), "")
	}
	if _, refused := readAll(t, archive(t, parts...)); !strings.Contains(refused,
		"more than 10000 parts") {
		t.Errorf("refused as %q", refused)
	}
	for cut := range 9 { // however the bytes are split
		e, text := &entries{}, []byte("PPK\x01\x02 PK\x01\x02K")
		_, _ = e.Write(text[:cut]) // never fails
		_, _ = e.Write(text[cut:])
		if e.count != 2 {
			t.Errorf("cut at %d: %d", cut, e.count)
		}
	}
}

// TestSharedTextsAreCounted at the limit of their number.
func TestSharedTextsAreCounted(t *testing.T) {
	for count := range 5 {
		file := archive(t, "xl/sharedStrings.xml", "<sst>"+
			strings.Repeat("<si><t>äb</t></si>", count)+"</sst>")
		r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		s, err := readShared(r, "", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for at := -1; at <= count; at++ {
			text, err := s.text(at)
			if there := at >= 0 && at < count; (err == nil) != there || there && text != "äb" {
				t.Errorf("text %d of %d: %q, %v", at, count, text, err)
			}
		}
		p, err := openPart(r, "xl/sharedStrings.xml")
		if err != nil {
			t.Fatal(err)
		}
		s.count, s.most = 0, 3
		if err := s.fill(p); (err != nil) != (count > 3) {
			t.Errorf("%d texts: %v", count, err)
		}
		if err := errors.Join(p.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestRowsAreCounted at the limit of their number.
func TestRowsAreCounted(t *testing.T) {
	for rows := range 4 {
		file := "a\n" + strings.Repeat("1\n", rows)
		r := &capped{Reader: newCSV(strings.NewReader(file)), left: 2}
		var err error
		read := -1
		for ; err == nil; read++ {
			_, err = r.Next()
		}
		if full := rows > 2; errors.Is(err, io.EOF) == full || read != min(rows, 2) {
			t.Errorf("%d of %d rows, %v", read, rows, err)
		}
	}
}

// TestSheetsAreReadAsWritten by another program.
func TestSheetsAreReadAsWritten(t *testing.T) {
	text := rapid.StringMatching(`[ -~äß€\n_x0]{0,12}`)
	rapid.Check(t, func(r *rapid.T) {
		file := excelize.NewFile()
		defer func() { _ = file.Close() }() // nothing is saved
		if err := file.SetSheetRow("Sheet1", "A1", &[]any{"a", "b", "c"}); err != nil {
			r.Fatal(err)
		}
		var want []string
		for n := range rapid.IntRange(0, 5).Draw(r, "rows") {
			var row Row
			var cells []any
			for _, name := range []string{"a", "b", "c"} {
				value := text.Draw(r, name)
				if value != "" {
					row = append(row, Cell{name, value})
				}
				cells = append(cells, value)
			}
			if err := file.SetSheetRow("Sheet1", fmt.Sprint("A", n+2), &cells); err != nil {
				r.Fatal(err)
			}
			if len(row) > 0 {
				want = append(want, string(row.AppendJSON(nil)))
			}
		}
		var out bytes.Buffer
		if err := file.Write(&out); err != nil {
			r.Fatal(err)
		}
		got, refused := readAll(t, out.Bytes())
		if !slices.Equal(got, want) || refused != "" {
			r.Errorf("read %q, %s; written %q", got, refused, want)
		}
	})
}
