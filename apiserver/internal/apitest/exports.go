package apitest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
)

// CheckExports compares the exports of a route with its JSON answer. They must have the same items,
// one per line, with columns named by the members.
func (s *Server) CheckExports(t *testing.T, path string) {
	t.Helper()
	read := func(query string) []byte {
		return s.Call(t, Scenario{As: Reader, Do: "GET " + path + query}).Body
	}
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(read("?limit=1000"), &page); err != nil || len(page.Items) == 0 {
		t.Fatalf("%d items, %v", len(page.Items), err)
	}
	lines := bytes.SplitAfter(read("?format=jsonl&limit=1"), []byte{'\n'})
	if len(lines) != len(page.Items)+1 {
		t.Fatalf("%d lines, want %d", len(lines)-1, len(page.Items))
	}
	table, err := csv.NewReader(bytes.NewReader(read("?format=csv&limit=1"))).ReadAll()
	if err != nil || len(table) != len(page.Items)+1 {
		t.Fatalf("a table of %d lines, want %d: %v", len(table), len(page.Items)+1, err)
	}
	for i, item := range page.Items {
		if string(lines[i]) != string(item)+"\n" {
			t.Errorf("line %d is %s, want %s", i, lines[i], item)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(item, &members); err != nil || len(members) != len(table[0]) {
			t.Fatalf("%d columns for %d members, %v", len(table[0]), len(members), err)
		}
		for column, name := range table[0] {
			want := strings.Trim(string(members[name]), `"`)
			if want == "null" {
				want = ""
			}
			if table[i+1][column] != want {
				t.Errorf("%s of line %d is %q, want %q", name, i, table[i+1][column], want)
			}
		}
	}
	s.Run(t, Scenario{Name: "another format", As: Reader, Do: "GET " + path + "?format=xlsx",
		Status: 400, Code: "invalid_request"})
}
