package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/upload"
)

// A filled row has the bounds that a row of a file has: bytes count without names and escapes.
func TestFilledRowsHaveTheBoundsOfAFile(t *testing.T) {
	t.Parallel()
	name := func(n int) string { return fmt.Sprintf("a-rather-long-name-%03d", n) }
	row := func(columns, bytes int, letter string) []byte {
		members := make([]string, columns)
		for n := range columns {
			size := bytes / columns
			if n == 0 {
				size += bytes % columns
			}
			text, err := json.Marshal(strings.Repeat(letter, size))
			if err != nil {
				t.Fatal(err)
			}
			members[n] = fmt.Sprintf("%q:%s", name(n), text)
		}
		return []byte("{" + strings.Join(members, ",") + `,"empty":"","_rowId":"r"}`)
	}
	ten := fmt.Sprintf(`{"empty":%q}`, strings.Repeat("y", 10))
	for _, test := range []struct {
		columns, bytes int
		letter, file   string
		end            string // of the refusal, "": it is filled
	}{
		{499, upload.MaxRow - 10, "x", ten, ""},
		{499, upload.MaxRow - 10, "\n", ten, ""},
		{499, upload.MaxRow - 9, "x", ten, "more than 1000000 bytes with what the file adds"},
		{499, 1_000, "x", ten, ""},
		{499, 1_000, "x", `{"another":"1"}`,
			"more than 500 columns with those that the file adds"},
		{498, 1_000, "x", `{"another":1}`, ""},
	} {
		filled, err := fillRow(row(test.columns, test.bytes, test.letter), []byte(test.file))
		var refusal *upload.Refusal
		switch {
		case test.end == "":
			if err != nil || !json.Valid(filled) {
				t.Errorf("%d columns of %d bytes: %v", test.columns, test.bytes, err)
			}
		case !errors.As(err, &refusal) || !strings.HasSuffix(refusal.Reason, test.end):
			t.Errorf("%d columns of %d bytes: %v", test.columns, test.bytes, err)
		}
	}
}
