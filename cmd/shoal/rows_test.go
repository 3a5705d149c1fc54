package main

import (
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestRows(t *testing.T) {
	b := newShell(t)
	b.api.Rows = []string{
		`{"_sourceUrl":"https://a.example/1","title":"One, \"1\"","price":"9","_jobId":"j"}`,
		`{"_sourceUrl":"https://a.example/2","title":"Two\u001b[31m\nlines","price":null,"_jobId":"j"}`,
		`{"_sourceUrl":"https://a.example/3", "title":true,"price":1.50,"_jobId":"j"}`,
		`{"_sourceUrl":"https://a.example/4","title":"=HYPERLINK(1)","price":"-1.5","_jobId":"j"}`,
	}
	got := b.shoal("rows", "--job", apitest.RunID, "--format", "jsonl")
	want := strings.Join(b.api.Rows, "\n") + "\n"
	if got.want(t, terminal.ExitOK); got.out != want {
		t.Errorf("jsonl:\n%s", got.out)
	}
	got = b.shoal("rows", "--job", apitest.RunID, "--format", "csv", "--bom", "--no-guard",
		"--fields", `title,"Price, EUR"`)
	if got.want(t, terminal.ExitOK); got.out != apitest.CSV {
		t.Errorf("csv: %q", got.out)
	}
	query := b.api.Calls[len(b.api.Calls)-1]
	if query != "GET /api/scraper/data/export?bom=true&fields=title%2C%22Price%2C+EUR%22&format=csv"+
		"&guard=false&jobId="+apitest.RunID {
		t.Errorf("asked %s", query)
	}
	got = b.shoal("rows", "--job", apitest.RunID, "--limit", "2")
	want = "title           price  _sourceUrl\nOne, \"1\"        9      https://a.example/1\n" +
		"Two [31m lines         https://a.example/2\n"
	if got.want(t, terminal.ExitOK); got.out != want {
		t.Errorf("table:\n%q\nwant\n%q", got.out, want)
	}
	b.shoal("rows", "--job", apitest.RunID, "--without", `_jobId,"Price, EUR"`).want(t,
		terminal.ExitOK, "One")
	if query = b.api.Calls[len(b.api.Calls)-1]; !strings.HasSuffix(query,
		"&without=_jobId%2C%22Price%2C+EUR%22") {
		t.Errorf("asked %s", query)
	}
	b.shoal("rows", "--job", apitest.RunID, "--without", "a", "--fields", "b").want(t,
		terminal.ExitUsage, "--without")
}

// Where a filter finds no rows, the command says why if the server does.
func TestRowsThatDoNotMatch(t *testing.T) {
	b := newShell(t)
	b.api.Reason = "price has texts"
	for _, format := range []string{"table", "jsonl"} {
		got := b.shoal("rows", "--job", apitest.RunID, "--format", format, "--filter",
			`{"price":{"$gt":1}}`)
		if got.want(t, terminal.ExitOK, b.api.Reason); strings.Contains(got.out, "texts") {
			t.Errorf("%s: a hint among the rows: %q", format, got.out)
		}
	}
	for _, quiet := range [][]string{{}, {"--filter", "{}", "--format", "csv"}} {
		got := b.shoal(append([]string{"rows", "--job", apitest.RunID}, quiet...)...)
		if got.want(t, terminal.ExitOK); got.err != "" {
			t.Errorf("%v: %q", quiet, got.err)
		}
	}
	b.api.Rows = []string{`{"price":2}`}
	if got := b.shoal("rows", "--job", apitest.RunID, "--filter", "{}"); got.err != "" {
		t.Errorf("rows come with a hint: %q", got.err)
	}
}
