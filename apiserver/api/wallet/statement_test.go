package wallet_test

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// TestStatementsAddUp adjusts a wallet over months while entries leave the state. Every statement
// begins at the end of the one before, and its postings lead to its own end.
func TestStatementsAddUp(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	sealed := map[string][]int64{"2026-01": {0}} // with the initial free grant
	months := []string{"2026-01", "2026-02", "2026-03", "2026-04"}
	for i, month := range months {
		for n := range 7 {
			if month == "2026-03" {
				break // a month without entries
			}
			amount := int64(1_000*(n-2) + i)
			if amount == 0 {
				amount = 1
			}
			adjust(t, s, amount)
			sealed[month] = append(sealed[month], amount)
		}
		s.Client.Archive(t, store, 3)
		next, err := time.Parse("2006-01", months[min(i+1, len(months)-1)])
		if err != nil {
			t.Fatal(err)
		}
		// the last millisecond of the month, then the first of the next
		if i+1 < len(months) {
			s.Clock.Advance(next.Add(-time.Millisecond).Sub(s.Clock.Now()))
			adjust(t, s, 5)
			sealed[month] = append(sealed[month], 5)
			s.Clock.Advance(time.Millisecond)
			adjust(t, s, 7)
			sealed[months[i+1]] = append(sealed[months[i+1]], 7)
		}
	}
	opening := int64(0)
	for _, month := range months {
		table := statement(t, s, month)
		want, closing := sealed[month], opening
		for _, amount := range want {
			closing += amount
		}
		if len(table) != len(want)+2 {
			t.Fatalf("%s has %d lines, want %d and two: %v", month, len(table), len(want), table)
		}
		balance := closing
		for i, line := range table[1 : len(table)-1] {
			if line[2] != fmt.Sprint(want[len(want)-1-i]) || line[3] != fmt.Sprint(balance) ||
				!strings.HasPrefix(line[0], month) {
				t.Errorf("%s, line %d: %v, want %d and the balance %d", month, i, line,
					want[len(want)-1-i], balance)
			}
			balance -= want[len(want)-1-i]
		}
		first, last := table[0], table[len(table)-1]
		if first[1] != "CLOSING_BALANCE" || first[3] != fmt.Sprint(closing) ||
			last[1] != "OPENING_BALANCE" || last[3] != fmt.Sprint(opening) || balance != opening {
			t.Errorf("%s goes from %v to %v, want %d to %d", month, last, first, opening, closing)
		}
		opening = closing
	}
	if empty := statement(t, s, "2025-12"); len(empty) != 2 || empty[0][3] != "0" {
		t.Errorf("before the wallet: %v", empty)
	}
	page := string(s.Call(t, apitest.Scenario{As: apitest.Reader,
		Do: "GET /api/wallet/statements/2026-01?format=html"}).Body)
	if !strings.Contains(page, "Closing balance") || !strings.Contains(page, "0.000005") ||
		strings.Count(page, "<td>Adjustment</td>") != 8 {
		t.Errorf("the page is %s", page)
	}
	german := string(s.Call(t, apitest.Scenario{As: apitest.Reader,
		Do:     "GET /api/wallet/statements/2026-01?format=html",
		Header: map[string]string{"Accept-Language": "de-DE,de;q=0.9"}}).Body)
	for _, wanted := range []string{"January 2026", "5 free", ">0,000005<", "-0,002"} {
		if !strings.Contains(german, wanted) {
			t.Errorf("the page lacks %q: %s", wanted, german)
		}
	}
	if strings.Contains(german, "T00:") || strings.Contains(german, "_") {
		t.Errorf("the page has codes: %s", german)
	}
	path := "GET /api/wallet/statements/"
	s.Run(t,
		apitest.Scenario{Name: "file", As: apitest.Reader, Do: path + "2026-01", Status: 200,
			Headers: map[string]string{"Content-Type": "text/csv; charset=utf-8",
				"Content-Disposition": `attachment; filename="statement-2026-01.csv"`}},
		apitest.Scenario{Name: "to come", As: apitest.Reader, Do: path + "2026-05", Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "no month", As: apitest.Reader, Do: path + "2026-13", Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "no format", As: apitest.Reader,
			Do: path + "2026-01?format=pdf", Status: 400, Code: "invalid_request"},
	)
}

// statement reads a month's statement, without the column names.
func statement(t *testing.T, s *apitest.Server, month string) [][]string {
	t.Helper()
	body := string(s.Call(t, apitest.Scenario{As: apitest.Reader,
		Do: "GET /api/wallet/statements/" + month}).Body)
	table, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(table) < 3 {
		t.Fatalf("%s: %v: %s", month, err, body)
	}
	for _, line := range table[1:] {
		if _, err := strconv.ParseInt(line[3], 10, 64); err != nil {
			t.Errorf("%s: %v: %v", month, line, err)
		}
	}
	return table[1:]
}
