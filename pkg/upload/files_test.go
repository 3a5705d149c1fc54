package upload_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"shoal.dev/shoal/pkg/upload"
)

var realFiles = flag.String("files", "",
	"folder of csv, jsonl and xlsx files that TestRealFiles reads; none of them is kept here")

// formatOf tells the format of a file by the end of its name. Files of other formats are refused in
// words: a file with tabs, and a JSON document that has more than one line.
var formatOf = map[string]upload.Format{
	".csv": upload.CSV, ".tsv": upload.CSV,
	".jsonl": upload.JSONL, ".ndjson": upload.JSONL, ".json": upload.JSONL,
	".xlsx": upload.XLSX, ".xlsm": upload.XLSX,
}

// TestRealFiles reads each file of a folder, and compares its rows with those of another reader:
// encoding/csv, encoding/json and excelize. The folder has one folder for each origin. A file that
// only one of the two reads is counted with the reason of the other.
func TestRealFiles(t *testing.T) {
	if *realFiles == "" {
		t.Skip("-files names no folder")
	}
	counts := map[string]int{}
	err := filepath.WalkDir(*realFiles, func(path string, entry fs.DirEntry, err error) error {
		ending := strings.ToLower(filepath.Ext(path))
		format, known := formatOf[ending]
		if err != nil || entry.IsDir() || !known {
			return err
		}
		counts[ending+": files"]++
		came := compareFile(t, format, path)
		counts[ending+": "+came]++
		return nil
	})
	if err != nil || len(counts) == 0 {
		t.Fatal("no file was read", err)
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %d", what, counts[what])
	}
}

// compareFile reads a file twice, and says in words what came of it.
func compareFile(t *testing.T, format upload.Format, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	own, refused := readRows(t, format, text)
	if refused != "" {
		t.Logf("%s: refused: %s", path, refused)
		return "refused: " + withoutParticulars(refused)
	}
	others, err := readOtherwise(format, text)
	var different error
	for _, other := range others {
		if different = firstDifference(own, other); different == nil {
			return "equal"
		}
	}
	if err != nil {
		t.Logf("%s: the other reader: %v", path, err)
		return "read, and refused by the other reader"
	}
	if format == upload.XLSX && len(others[len(others)-1]) == 0 {
		t.Logf("%s: %d rows, where the other reader finds none", path, len(own))
		return "read, and empty for the other reader"
	}
	t.Errorf("%s: %v", path, different)
	return "different"
}

var particulars = regexp.MustCompile(`^row \d+: |"[^"]*"|\([^)]*\)|\d+`)

// withoutParticulars leaves out of a reason what is of one file alone.
func withoutParticulars(reason string) string { return particulars.ReplaceAllString(reason, "") }

// readRows returns the rows of a file, and why it is refused.
func readRows(t *testing.T, format upload.Format, text []byte) (rows []upload.Row, refused string) {
	t.Helper()
	r, err := upload.NewReader(format, bytes.NewReader(text), t.TempDir())
	if err == nil {
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	for err == nil {
		var row upload.Row
		if row, err = r.Next(); err == nil {
			rows = append(rows, slices.Clone(row))
		}
	}
	refusal := (*upload.Refusal)(nil)
	switch {
	case errors.As(err, &refusal):
		return rows, refusal.Reason
	case !errors.Is(err, io.EOF):
		t.Fatal(err)
	}
	return rows, ""
}

// readOtherwise returns what another reader makes of a file. Each separator gives a csv file other
// rows. Any of them may be right, unless only one makes a rectangle.
func readOtherwise(format upload.Format, text []byte) (readings [][]upload.Row, err error) {
	switch format {
	case upload.JSONL:
		rows, err := readObjects(text)
		return [][]upload.Row{rows}, err
	case upload.XLSX:
		return readBook(text)
	}
	var rectangles [][]upload.Row
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	separators := ",;"
	if named, found := bytes.CutPrefix(text, []byte("sep=")); found && len(named) > 1 {
		separators, text = string(named[:1]), named[1:]
	}
	for _, separator := range separators {
		table, failed := readTable(text, separator)
		if failed != nil {
			err = failed
			continue
		}
		readings = append(readings, rowsOf(table))
		if isRectangle(table) {
			rectangles = append(rectangles, rowsOf(table))
		}
	}
	if len(rectangles) == 1 {
		return rectangles, nil
	}
	return readings, err
}

// readTable reads separated text by encoding/csv. It ends a row at a line feed alone, and its
// quoted line ends are line feeds.
func readTable(text []byte, separator rune) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(withLineFeeds(string(text))))
	r.Comma, r.FieldsPerRecord = separator, -1
	return r.ReadAll()
}

// withLineFeeds writes each line end as a line feed. excelize leaves a carriage return escaped in
// what a formula results in.
func withLineFeeds(text string) string {
	text = strings.ReplaceAll(text, "_x000D_", "\r")
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// isRectangle reports whether all rows have the same number of values, and more than one.
func isRectangle(table [][]string) bool {
	return len(table) > 1 && len(table[0]) > 1 && !slices.ContainsFunc(table,
		func(row []string) bool { return len(row) != len(table[0]) })
}

var (
	chartOrDialog = regexp.MustCompile("(?i)(chart|dialog|macro)sheets/")
	renamedTexts  = regexp.MustCompile("(?i)([^/]|[^l]/)sharedstrings.xml$")
	// droppedCode is half a character, escaped. excelize drops both halves.
	droppedCode = regexp.MustCompile(`_x[Dd][89A-Fa-f]`)
)

// readBook reads the first sheet of a spreadsheet by excelize. That takes a chart for a sheet
// without cells, so behind it there may be other readings.
func readBook(text []byte) (readings [][]upload.Row, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it panics: %v", cause)
		}
	}()
	book, err := excelize.OpenReader(bytes.NewReader(text), excelize.Options{RawCellValue: true})
	if err != nil {
		return nil, err
	}
	charts := false
	book.Pkg.Range(func(name, part any) bool {
		charts = charts || chartOrDialog.MatchString(name.(string))
		if renamedTexts.MatchString(name.(string)) {
			err = errors.New("it finds shared texts by their usual place alone")
		}
		if texts, kept := part.([]byte); kept && droppedCode.Match(texts) {
			err = errors.New("it drops escaped halves of characters")
		}
		return true
	})
	for _, sheet := range book.GetSheetList() {
		table, failed := book.GetRows(sheet)
		for i := 0; failed == nil && i < len(table); i++ {
			failed = spellNumbers(book, sheet, i, table[i])
		}
		err = errors.Join(err, failed)
		if readings = append(readings, rowsOf(table)); !charts || len(table) > 0 {
			break
		}
	}
	return readings, errors.Join(err, book.Close())
}

// spellNumbers spells the numbers of a row as our rules do: without an exponent, without .0, and in
// as few digits as tell them apart.
func spellNumbers(book *excelize.File, sheet string, row int, texts []string) error {
	for at, text := range texts {
		number, err := strconv.ParseFloat(text, 64)
		size := math.Abs(number)
		if err != nil || number != 0 && size < 1e-6 || size >= 1<<53 ||
			strings.HasPrefix(text, "00") {
			continue
		}
		if len(text) <= 17 && !strings.HasSuffix(text, ".0") && !strings.ContainsAny(text, "eE") {
			continue
		}
		cell, err := excelize.CoordinatesToCellName(at+1, row+1)
		if err != nil {
			return err
		}
		kind, err := book.GetCellType(sheet, cell)
		if err != nil {
			return err
		}
		if kind == excelize.CellTypeNumber || kind == excelize.CellTypeUnset {
			texts[at] = strconv.FormatFloat(number, 'f', -1, 64)
		}
	}
	return nil
}

// readObjects reads lines by encoding/json. Nested values stay as written.
func readObjects(text []byte) (rows []upload.Row, err error) {
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(line, &members); err != nil {
			return nil, err
		}
		var row upload.Row
		for name, value := range members {
			text := string(value)
			switch {
			case text == "null":
				continue
			case text[0] == '"':
				if err := json.Unmarshal(value, &text); err != nil {
					return nil, err
				}
			}
			if text != "" {
				row = append(row, upload.Cell{Name: name, Text: text})
			}
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// rowsOf applies our rules to a table. Its first row with a name gives the names. Empty values and
// empty rows are left out.
func rowsOf(table [][]string) (rows []upload.Row) {
	at := slices.IndexFunc(table, func(row []string) bool {
		return strings.TrimSpace(strings.Join(row, "")) != ""
	})
	if at < 0 {
		return nil
	}
	names := namesOf(table[at])
	for _, values := range table[at+1:] {
		var row upload.Row
		for i, text := range values {
			if text == "" {
				continue
			}
			for i >= len(names) {
				names = append(names, freeName(names, "", len(names)))
			}
			row = append(row, upload.Cell{Name: names[i], Text: text})
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// namesOf are the names of columns. Each name that is given goes to its first column.
func namesOf(given []string) (names []string) {
	for len(given) > 0 && strings.TrimSpace(given[len(given)-1]) == "" {
		given = given[:len(given)-1]
	}
	for _, name := range given {
		names = append(names, strings.TrimSpace(name))
	}
	taken := slices.Clone(names)
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			names[i] = freeName(append(slices.Clone(names[:i]), taken...), name, i)
		}
	}
	return names
}

// freeName numbers the name of a column, or that of its place, until nobody has it.
func freeName(taken []string, name string, at int) string {
	if name == "" {
		name = "column_" + strconv.Itoa(at+1)
	}
	for free, n := name, 2; ; n++ {
		if !slices.Contains(taken, free) {
			return free
		}
		free = name + "_" + strconv.Itoa(n)
	}
}

// firstDifference tells what differs between our rows and those of another reader.
func firstDifference(own, other []upload.Row) error {
	for i := range min(len(own), len(other)) {
		ours, theirs := sortCells(own[i]), sortCells(other[i])
		for n := range min(len(ours), len(theirs)) {
			if !isSameCell(ours[n], theirs[n]) {
				return fmt.Errorf("row %d has %.300q, not %.300q", i+1, ours[n], theirs[n])
			}
		}
		if len(ours) != len(theirs) {
			return fmt.Errorf("row %d is %.300q, not %.300q", i+1, ours, theirs)
		}
	}
	if len(own) != len(other) {
		return fmt.Errorf("%d rows, not %d", len(own), len(other))
	}
	return nil
}

// sortCells sorts the values of a row by name, since an object has no order of its own.
func sortCells(row upload.Row) upload.Row {
	return slices.SortedFunc(slices.Values(row),
		func(a, b upload.Cell) int { return strings.Compare(a.Name, b.Name) })
}

// isSameCell allows for line ends, which the other reader changes, and for white space in nested
// JSON.
func isSameCell(own, other upload.Cell) bool {
	if withLineFeeds(own.Name) != withLineFeeds(other.Name) {
		return false
	}
	if withLineFeeds(own.Text) == withLineFeeds(other.Text) {
		return true
	}
	var a, b any
	return strings.ContainsAny(other.Text[:1], "[{") &&
		json.Unmarshal([]byte(own.Text), &a) == nil &&
		json.Unmarshal([]byte(other.Text), &b) == nil && reflect.DeepEqual(a, b)
}
