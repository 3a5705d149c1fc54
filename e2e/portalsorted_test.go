package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
)

// sortedRows is more than pages of the API reach (decision 19).
const sortedRows = 104_500

// TestPortalSortsRows goes through the rows of a large file in the order of a field, to the last
// one and back. It repeats that with filtered rows, and with those of a category.
func TestPortalSortsRows(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Numbers"))(t)
	var file strings.Builder
	file.WriteString("n,word\n")
	for i := range sortedRows { // 7919 and the number of rows are coprime
		n := i * 7919 % sortedRows
		fmt.Fprintf(&file, "%d,%s\n", n, []string{"even", "odd"}[n%2])
	}
	v.imports(group, "numbers", "csv", file.String())
	if err := v.Call(ctx, "PUT", "/api/scraper/data/group/"+group+"/category", nil,
		map[string]any{"name": "Small", "filters": map[string]any{"n": map[string]any{
			"$lt": 1_500}}}, nil); err != nil {
		t.Fatal(err)
	}

	v.goes("/rows/"+group, `document.querySelector(".rows tbody td bdi")`)
	v.chooses("sort", "n")
	v.hasRow(1, 0)
	v.clicks(`.filter .check:has(+ details) input`)
	v.hasRow(1, sortedRows-1)
	v.goesToRow(sortedRows)
	v.hasRow(sortedRows, 0)
	v.sees(fmt.Sprintf(`document.querySelector(".rows table").ariaRowCount === "%d"`,
		sortedRows+1))
	v.inOrder()
	v.goesToRow(60_100) // among the skipped ones
	v.hasRow(60_100, sortedRows-60_100)
	v.inOrder()
	for row := 5_000; row <= 35_000; row += 5_000 { // more pages than are kept
		v.goesToRow(row)
		v.hasRow(row, sortedRows-row)
	}
	v.imports(group, "late", "csv", fmt.Sprintf("n,word\n%d,late\n", 2*sortedRows))
	asks[bool](v.person, `(document.querySelector(".rows").scrollTop = 0, true)`)
	v.hasRow(1, sortedRows-1)
	v.inOrder()
	if export := asks[string](v.person, `document.querySelector(".links a").href`); !strings.
		Contains(export, "sort=n%2Cdesc") {
		t.Errorf("the export %s has another order", export)
	}

	v.goes("/rows/"+group+"?sort=n&desc=yes&field=word&op=eq&value=odd",
		`document.querySelector(".rows tbody td bdi")`)
	v.hasRow(1, sortedRows-1)
	v.goesToRow(sortedRows / 2)
	v.hasRow(sortedRows/2, 1)
	v.sees(fmt.Sprintf(`document.querySelector(".rows table").ariaRowCount === "%d"`,
		sortedRows/2+1))
	category := asks[string](v.person, `document.querySelectorAll("#category option")[1].value`)
	v.chooses("category", category)
	v.hasRow(1, 1_499)
	v.goesToRow(750)
	v.hasRow(750, 1)
	v.harmless()
	v.ends()
}

// imports makes a scraper of a file, and returns once its rows are stored.
func (v *visit) imports(group, name, format, file string) (sent uploadedFile) {
	t := v.person.t
	t.Helper()
	answer, err := v.Do(t.Context(), "POST", "/api/scraper/group/"+group+"/file-scraper",
		url.Values{"format": {format}, "name": {name}},
		map[string]string{"csv": "text/csv", "jsonl": "application/jsonl"}[format],
		strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	err = json.NewDecoder(answer.Body).Decode(&sent)
	if closed := answer.Body.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	if _, err := v.Follow(suite.Within(t, suite.Patience), sent.JobID, nil); err != nil {
		t.Fatal(err)
	}
	return sent
}

// hasRow waits until a row is visible, and checks the value of its first field.
func (v *visit) hasRow(row, n int) {
	v.person.t.Helper()
	v.sees(fmt.Sprintf(`(() => {
		const box = document.querySelector(".rows")?.getBoundingClientRect();
		const row = document.querySelector(".rows tr[aria-rowindex='%d']");
		return row?.querySelector("td")?.innerText === "%d" &&
			row.getBoundingClientRect().top < box.bottom &&
			row.getBoundingClientRect().bottom > box.top; })()`, row+1, n))
}

// inOrder checks that all drawn rows of the table are in descending order.
func (v *visit) inOrder() {
	v.person.t.Helper()
	v.sees(`(() => {
		const all = [...document.querySelectorAll(".rows tbody tr:not(.gap)")].map(row =>
			[Number(row.ariaRowIndex), row.querySelector("td").innerText]);
		return all.length > 10 && all.every(([at, n]) => n !== "" &&
			Number(n) + at === Number(all[0][1]) + all[0][0]); })()`)
}
