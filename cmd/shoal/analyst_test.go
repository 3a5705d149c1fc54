package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

const proposals = `[{"scraperDTO":{"name":"a.example x","groupRef":"66f0c2a1b7d4e8f9000000aa",
	"type":"MULTIPLE_PRODUCTS","sourceConfig":{"url":"https://a.example/list",
	"pagination":{"type":"NEXT_LINK","selector":".next"}},"itemsConfig":[{"name":"title",
	"selector":"h2","kind":"TEXT"}],"unknownToThisClient":1.50},"sampleData":[
	{"title":"One\u001b[31m","price":"9"},{"title":"Two","price":null}],"executionTimeSec":1},
	{"scraperDTO":{"name":"a.example x","groupRef":"66f0c2a1b7d4e8f9000000aa",
	"type":"SINGLE_PRODUCT","sourceConfig":{"url":"https://a.example/list"}},
	"sampleData":[{"heading":"Lamps"}],"executionTimeSec":1}]`

// scraping is a shell whose server finds two candidates and whose runs end at once.
func scraping(t *testing.T) *shell {
	b := newShell(t)
	b.api.Proposals = proposals
	b.api.Frames = [][]string{{`{"state":"SUCCESS","itemsQuantity":2,"totalRequests":1}`}}
	b.api.Outcome = apitest.Job("COMPLETED", nil)
	return b
}

// saved returns the scraper that was put last.
func (b *shell) saved() map[string]any {
	b.t.Helper()
	var scraper map[string]any
	if err := json.Unmarshal([]byte(b.api.Bodies["PUT /api/scraper"]), &scraper); err != nil {
		b.t.Fatal(err)
	}
	return scraper
}

func TestScrapeAsksWhichCandidate(t *testing.T) {
	b := scraping(t)
	b.in = "3\n1\n"
	out := filepath.Join(b.data, "rows.csv")
	got := b.shoal("scrape", "https://a.example/list", "-o", out)
	got.want(t, terminal.ExitOK, "1  a sample of 2 rows, 2 columns, a row for each item of the page, "+
		"follows up to 50 pages", "title     price", "One [31m  9",
		"2  a sample of 1 row", `"3" is no number of a candidate`, "COMPLETED: 2 rows",
		"The rows are in "+out, "shoal scrape --scraper 'a.example x'")
	if strings.Contains(got.err, "\x1b[31m") {
		t.Error("control characters reach the terminal")
	}
	written, err := os.ReadFile(out)
	if err != nil || string(written) != apitest.CSV || got.out != "" {
		t.Errorf("%q, %v; out %q", written, err, got.out)
	}
	scraper := b.saved()
	if scraper["type"] != "MULTIPLE_PRODUCTS" || scraper["unknownToThisClient"] != 1.5 {
		t.Errorf("saved %v", scraper)
	}
}

// A question can be interrupted without answering it first.
func TestQuestionsAreInterrupted(t *testing.T) {
	b := scraping(t)
	typed, person := io.Pipe()
	defer func() { _ = person.Close() }()
	b.typed = typed
	b.api.Scrapers = []map[string]any{{"id": apitest.ScraperID, "name": "list"}}
	for question, command := range map[string][]string{
		"Which one?": {"scrape", "https://a.example/list"},
		"Delete it?": {"scraper", "delete", "list"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		b.said = func(text string) {
			if strings.Contains(text, question) {
				interrupt()
			}
		}
		b.shoalIn(ctx, command...).want(t, terminal.ExitInterrupted, "interrupted")
	}
	if b.api.Asked("DELETE") || b.api.Bodies["PUT /api/scraper"] != "" {
		t.Errorf("calls %q", b.api.Calls)
	}
}

func TestScrapeTakesTheFirstForScripts(t *testing.T) {
	b := scraping(t)
	got := b.shoal("scrape", "https://a.example/list", "--yes", "--pages", "3")
	if got.want(t, terminal.ExitOK, "Candidate 1 of 2"); got.out != apitest.CSV {
		t.Errorf("out %q", got.out)
	}
	source := b.saved()["sourceConfig"].(map[string]any)
	if most := source["pagination"].(map[string]any)["max"]; most != 3.0 {
		t.Errorf("at most %v pages", most)
	}
	b.shoal("scrape", "https://a.example/list", "--candidate", "2", "--pages", "1").want(t,
		terminal.ExitOK)
	if kind := b.saved()["type"]; kind != "SINGLE_PRODUCT" {
		t.Errorf("saved a %v", kind)
	}
	b.shoal("scrape", "https://a.example/list", "--candidate", "3").want(t, terminal.ExitUsage,
		"1 to 2")
	b.shoal("scrape", "https://a.example/list").want(t, terminal.ExitUsage, "nobody answers")
	b.in = "0\n"
	b.shoal("scrape", "https://a.example/list").want(t, terminal.ExitFailed, "none was chosen",
		"shoal preview")
	b.api.Proposals, b.api.Reason = "[]", `The page \"x\" is empty.\u00e4`
	b.shoal("scrape", "https://a.example/list", "--yes").want(t, terminal.ExitFailed,
		`nothing that makes rows was found on https://a.example/list: The page "x" is empty.ä`)
	b.api.Sample = "[]"
	b.shoal("preview", apitest.ScraperID).want(t, terminal.ExitOK, "no row: The page")
	b.shoal("scrape", "a.example/list").want(t, terminal.ExitUsage, "is it https://a.example/list?")
	b.shoal("scrape", "missing.txt").want(t, terminal.ExitUsage, "missing.txt")
	b.shoal("scrape").want(t, terminal.ExitUsage, "an address")
}

func TestScrapeReadsAList(t *testing.T) {
	b := scraping(t)
	list := b.write("lamps.txt", "url\nhttps://a.example/1\nhttps://a.example/2\n")
	b.shoal("scrape", list, "--yes").want(t, terminal.ExitFailed,
		"line 1 is a header, not an address", "1 line of 3 no address; --skip-bad")
	if b.api.Asked("POST") {
		t.Error("a list with a bad line was read")
	}
	got := b.shoal("scrape", list, "--yes", "--skip-bad", "--format", "jsonl", "--name", "lamps")
	got.want(t, terminal.ExitOK, "1 bad line left out", "Looking at https://a.example/1")
	const call = "POST /api/scraper/url-list-run"
	if body := b.api.Bodies[call]; body != "https://a.example/1\nhttps://a.example/2\n" {
		t.Errorf("sent %q", body)
	}
	query := queryOf(t, b.api, call)
	if query.Get("templateScraperId") != apitest.SavedID || query.Get("name") != "lamps" {
		t.Errorf("query %v", query)
	}
	b.shoal("scrape", list, "--skip-bad", "--scraper", apitest.ScraperID).want(t, terminal.ExitOK)
}

// Flags that only matter for inspecting a page are refused with a scraper, before anything is read.
func TestScrapeRefusesWhatAScraperPassesOver(t *testing.T) {
	b := scraping(t)
	list := b.write("lamps.txt", "https://a.example/1\n")
	for _, flags := range []string{"--pages 3", "--hidden", "--candidate 2", "--group news",
		"--name lamps", "https://a.example/", list + " --pages 3"} {
		args := append([]string{"scrape", "--scraper", apitest.ScraperID}, strings.Fields(flags)...)
		b.shoal(args...).want(t, terminal.ExitUsage, "--scraper")
	}
	if len(b.api.Calls) > 0 {
		t.Errorf("calls %q", b.api.Calls)
	}
	b.shoal("detect", "https://a.example/list", "--json", "-o", "lamps.json").want(t,
		terminal.ExitUsage, "--json")
}

// A failed run has no rows to write: they do not replace those of the run before.
func TestScrapeKeepsTheFileWhenTheRunFails(t *testing.T) {
	b := scraping(t)
	b.api.Outcome = apitest.Job("FAILED", nil)
	b.api.Frames = [][]string{{`{"state":"FAILED"}`}}
	out := b.write("rows.csv", "title\nlamp\n")
	b.shoal("scrape", "https://a.example/list", "--yes", "-o", out).want(t, terminal.ExitRunFailed,
		"rows.csv is left as it was", "shoal rows --job "+apitest.RunID)
	if kept, err := os.ReadFile(out); err != nil || string(kept) != "title\nlamp\n" {
		t.Errorf("%q, %v", kept, err)
	}
}

// A run that ends badly sets the exit code, and its rows are written.
func TestScrapeEndsWithTheRunsExitCode(t *testing.T) {
	b := scraping(t)
	b.api.Outcome = apitest.Job("STOPPED", map[string]any{"stopReason": "MAX_CHARGE_REACHED"})
	b.api.Frames = [][]string{{`{"state":"CANCELLED"}`}}
	got := b.shoal("scrape", "https://a.example/list", "--yes", "--max-charge", "500")
	if got.want(t, terminal.ExitRunStopped, "MAX_CHARGE_REACHED"); got.out != apitest.CSV {
		t.Errorf("out %q", got.out)
	}
	if !b.api.Asked("POST /api/scraper/" + apitest.SavedID + "/run?maxChargeMicros=500") {
		t.Errorf("calls %v", b.api.Calls)
	}
}

func TestDetectAndPreview(t *testing.T) {
	b := scraping(t)
	got := b.shoal("detect", "https://a.example/list")
	got.want(t, terminal.ExitOK, "1  a sample of 2 rows", "heading\nLamps")
	file := filepath.Join(b.data, "lamps.json")
	b.shoal("detect", "https://a.example/list", "-o", file).want(t, terminal.ExitOK)
	b.shoal("scraper", "put", file, "--name", "lamps", "--new").want(t, terminal.ExitOK,
		apitest.SavedID)
	if scraper := b.saved(); scraper["name"] != "lamps" || scraper["unknownToThisClient"] != 1.5 {
		t.Errorf("saved %v", scraper)
	}
	got = b.shoal("detect", "https://a.example/list", "--json")
	var answer []map[string]any
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || len(answer) != 2 ||
		!strings.Contains(got.out, `"executionTimeSec"`) {
		t.Errorf("%v: %s", err, got.out)
	}
	b.shoal("preview", "https://a.example/list", "--field", "title=h2").want(t, terminal.ExitOK,
		"title     price")
	b.shoal("preview", "https://a.example/list", "--find", "price", "--find", "size").want(t,
		terminal.ExitOK, "price  9 EUR", "size   -")
	b.api.Sample = `[{"title":"One"}]`
	b.shoal("preview", apitest.ScraperID).want(t, terminal.ExitOK, "title\nOne")
	b.shoal("preview", "https://a.example/list").want(t, terminal.ExitUsage, "shoal detect")
	b.shoal("preview", apitest.ScraperID, "--find", "x").want(t, terminal.ExitUsage, "is none")
	b.shoal("detect", "a.example").want(t, terminal.ExitUsage, "https://a.example")
}

func TestScrapersFromAndToFiles(t *testing.T) {
	b := newShell(t)
	b.api.Scrapers = []map[string]any{{"id": apitest.ScraperID, "name": "list",
		"type":        "SINGLE_PRODUCT",
		"itemsConfig": []any{map[string]any{"name": "title"}}}}
	b.shoal("scraper", "list").want(t, terminal.ExitOK, apitest.ScraperID, "title")
	file := filepath.Join(b.data, "s.json")
	b.shoal("scraper", "get", "list", "-o", file).want(t, terminal.ExitOK)
	b.shoal("scraper", "get", "nosuch").want(t, terminal.ExitFailed, `no scraper "nosuch"`)
	b.shoal("scraper", "put", file).want(t, terminal.ExitOK, "saved as list")
	if id := b.saved()["id"]; id != apitest.ScraperID {
		t.Errorf("put under %v", id)
	}
	b.shoal("scraper", "copy", "list", "other").want(t, terminal.ExitFailed,
		"shoal run --template "+apitest.ScraperID)
	b.api.Source = map[string]any{"url": "https://a.example/"}
	b.shoal("scraper", "copy", "list", "other", "--group", "news").want(t, terminal.ExitOK)
	if s := b.saved(); s["id"] != nil || s["name"] != "other" ||
		s["groupRef"] != "66f0c2a1b7d4e8f9000000aa" {
		t.Errorf("copied as %v", s)
	}
	b.in = `{"name":"x"}`
	b.shoal("scraper", "put", "-").want(t, terminal.ExitOK)
	if !strings.Contains(b.api.Bodies["PUT /api/scraper/group"], `"default"`) {
		t.Error("without a group it goes to the default one")
	}
	b.in = "no JSON"
	b.shoal("scraper", "put", "-").want(t, terminal.ExitUsage, "no scraper's JSON")
	b.in = "n\n"
	b.shoal("scraper", "delete", "list").want(t, terminal.ExitFailed, "This cannot be undone.",
		"nothing is deleted")
	if b.api.Asked("DELETE") {
		t.Error("it was deleted")
	}
	b.shoal("scraper", "delete", "list", "--yes").want(t, terminal.ExitOK, "list is deleted")
	if !b.api.Asked("DELETE /api/scraper/" + apitest.ScraperID + "?token=t0") {
		t.Errorf("calls %v", b.api.Calls)
	}
	b.shoal("scraper", "delete", "list", "--yes", "--json").wantJSON(t, map[string]any{
		"token": "t0", "previewSummary": map[string]any{"entityName": "list",
			"warnings": []string{"This cannot be undone."}}})
}

func TestErrorsAreSummedUp(t *testing.T) {
	b := newShell(t)
	b.api.Jobs = []map[string]any{apitest.Job("COMPLETED", nil)}
	b.shoal("errors", apitest.RunID).want(t, terminal.ExitOK, "1 link  dns_failed: No such host",
		"for example https://a.example/2", "Check the spelling of the host",
		"1 link  http_status 404: Not found", "The page is gone. Leave it out.")
	got := b.shoal("errors", apitest.RunID, "--code", "dns_failed")
	if got.want(t, terminal.ExitOK); got.out != "https://a.example/2\n" {
		t.Errorf("%q", got.out)
	}
	got = b.shoal("errors", apitest.RunID, "--json")
	var links []map[string]any
	if err := json.Unmarshal([]byte(got.out), &links); err != nil || len(links) != 2 ||
		links[0]["place"] != "0.0" {
		t.Errorf("%v: %s", err, got.out)
	}
}

func TestDiffShowsWhatChanged(t *testing.T) {
	b := newShell(t)
	got := b.shoal("diff", apitest.RunID, "66f0c2a1b7d4e8f901234568", "--by", "sku")
	got.want(t, terminal.ExitOK, "1 added, 1 removed, 1 changed, 40 as before")
	if want := "+ sku=d\n~ sku=a\n    price: 1 -> 9\n    note: - -> new\n- sku=b\n"; got.out != want {
		t.Errorf("%q, want %q", got.out, want)
	}
	if !b.api.Asked("GET /api/scraper/data/diff?from=" + apitest.RunID +
		"&key=sku&limit=1&to=66f0c2a1b7d4e8f901234568") {
		t.Errorf("calls %v", b.api.Calls)
	}
	got = b.shoal("diff", apitest.RunID, "66f0c2a1b7d4e8f901234568", "--format", "jsonl")
	if got.want(t, terminal.ExitOK); got.out != apitest.DiffLines {
		t.Errorf("%q", got.out)
	}
	got = b.shoal("diff", apitest.RunID, "66f0c2a1b7d4e8f901234568", "--json")
	got.wantJSON(t, map[string]any{"key": []string{"sku"}, "summary": map[string]int{"added": 1,
		"removed": 1, "changed": 1, "unchanged": 40}})
	if !b.api.Asked("GET /api/scraper/data/diff?from=" + apitest.RunID +
		"&limit=1000&to=66f0c2a1b7d4e8f901234568") {
		t.Errorf("calls %v", b.api.Calls)
	}
	b.shoal("diff", apitest.RunID, "66f0c2a1b7d4e8f901234568", "--json", "--format", "csv").want(t,
		terminal.ExitUsage, "two formats")
}

func TestProfileSaysWhatFieldsAreLike(t *testing.T) {
	b := newShell(t)
	b.api.Jobs = []map[string]any{apitest.Job("COMPLETED", nil)}
	b.api.Compared = []string{"a", "b"}
	b.shoal("profile", apitest.RunID).want(t, terminal.ExitOK,
		"too few runs before it to tell what is odd: 2 of 3")
	b.api.Compared = []string{"a", "b", "c"}
	got := b.shoal("profile", apitest.RunID)
	got.want(t, terminal.ExitOK, "1,200 rows", "nothing is odd beside 3 runs before")
	want := "FIELD  FILLED  TYPES              MIN  MAX   DISTINCT  EXAMPLE\n" +
		"price  98.5%   numericText, text  0.5  1299  ~800      9.90\n" +
		"title  100.0%  text                          3         Lamp\n"
	if got.out != want {
		t.Errorf("%q, want %q", got.out, want)
	}
	b.api.Oddities = []map[string]any{{"text": "Half of the rows have no price."}}
	b.shoal("profile", apitest.RunID).want(t, terminal.ExitOK,
		"odd: Half of the rows have no price.")
	got = b.shoal("profile", apitest.RunID, "--json")
	var profile struct{ Fields []map[string]any }
	if err := json.Unmarshal([]byte(got.out), &profile); err != nil || len(profile.Fields) != 2 ||
		profile.Fields[0]["distinct"] != 800.0 {
		t.Errorf("%v: %s", err, got.out)
	}
	// A run in progress cannot be judged yet.
	b.api.Jobs = []map[string]any{apitest.Job("RUNNING", nil)}
	calls := len(b.api.Calls)
	b.shoal("profile", apitest.RunID).want(t, terminal.ExitOK, "1,200 rows")
	if rest := strings.Join(b.api.Calls[calls:], " "); strings.Contains(rest, "oddities") {
		t.Errorf("calls %s", rest)
	}
}

func TestRowsOfScrapersAndGroups(t *testing.T) {
	b := newShell(t)
	b.api.Rows = []string{`{"title":"One"}`}
	b.shoal("rows", "--group", "news", "--last-run", "--format", "jsonl").want(t, terminal.ExitOK,
		`{"title":"One"}`)
	query := b.api.Calls[len(b.api.Calls)-1]
	if !strings.Contains(query, "groupId=66f0c2a1b7d4e8f9000000aa&isLastRun=true") {
		t.Errorf("asked %s", query)
	}
	b.shoal("rows", "--job", apitest.RunID, "--sort", "price,desc").want(t, terminal.ExitOK, "One")
	if query := b.api.Calls[len(b.api.Calls)-1]; !strings.Contains(query, "sort=price%2Cdesc") {
		t.Errorf("asked %s", query)
	}
	file := filepath.Join(b.data, "rows.csv")
	b.shoal("rows", "--scraper", apitest.ScraperID, "--format", "csv", "-o", file).want(t,
		terminal.ExitOK)
	if text, err := os.ReadFile(file); err != nil || string(text) != apitest.CSV {
		t.Errorf("%q, %v", text, err)
	}
	// A broken answer leaves no file that looks complete.
	b.api.CutOff = "GET /api/scraper/data/export"
	b.shoal("rows", "--job", apitest.RunID, "--format", "csv", "-o", file+"2").want(t,
		terminal.ExitNoAccess, "broke off")
	if left, err := filepath.Glob(file + "2*"); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestMisspeltVariablesAreTold(t *testing.T) {
	b := newShell(t)
	for name, value := range map[string]string{"SHOAL_LISTN": "x", "SHOAL_WHATEVER_ELSE": "1",
		"SHOAL_SERVICE_HOST": "10.0.0.1", "SHOAL_PORT_8080_TCP": "x", "SHOAL_CLUSTER_SUITE": "0"} {
		t.Setenv(name, value)
	}
	got := b.shoal("version")
	got.want(t, terminal.ExitOK, "SHOAL_LISTN sets nothing: did you mean SHOAL_LISTEN?",
		"SHOAL_WHATEVER_ELSE sets nothing: no flag is called --whatever-else")
	if strings.Count(got.err, "\n") != 2 {
		t.Errorf("it tells more:\n%s", got.err)
	}
}

// TestVariablesThatSetSomethingAreNotTold: several commands have flags with the same name but
// different environment variables.
func TestVariablesThatSetSomethingAreNotTold(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.Name("shoal"), kong.DefaultEnvars("SHOAL"))
	if err != nil {
		t.Fatal(err)
	}
	set := 0
	for _, leaf := range parser.Model.Leaves(true) {
		for _, flag := range leaf.Flags {
			for _, name := range flag.Envs {
				t.Setenv(name, "x")
				set++
			}
		}
	}
	b := newShell(t)
	got := b.shoal("version")
	if got.want(t, terminal.ExitOK); strings.Contains(got.err, "sets nothing") || set < 100 {
		t.Errorf("%d variables are set, and it tells:\n%s", set, got.err)
	}
}

func TestVersionCompletionAndManual(t *testing.T) {
	b := newShell(t)
	b.shoal("--version").want(t, terminal.ExitOK, "shoal ")
	for _, name := range []string{"bash", "zsh", "fish"} {
		b.shoal("completion", name).want(t, terminal.ExitOK, "complete")
	}
	b.shoal("completion", "tcsh").want(t, terminal.ExitUsage, "tcsh")
	b.shoal("man").want(t, terminal.ExitOK, ".TH SHOAL", "scrape", "max-charge")
	t.Setenv("COMP_LINE", "shoal scraper g")
	got := b.shoal()
	if got.want(t, terminal.ExitOK); got.out != "get\n" {
		t.Errorf("completes to %q", got.out)
	}
}
