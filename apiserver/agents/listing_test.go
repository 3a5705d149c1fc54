package agents_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// TestListIsShort bounds the tokens that the list of tools takes: all pages together, and the first
// page, with which most clients begin.
func TestListIsShort(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		as         string
		all, first int // tokens, at four characters each
	}{{apitest.LLM, 22_000, 14_500}, {apitest.Reader, 9_000, 9_000}} {
		a := r.connect(t, c.as, "", nil)
		params, sizes := &mcp.ListToolsParams{}, []int{}
		var parts [4]int
		for {
			page, err := a.ListTools(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Tools) > 60 {
				t.Errorf("a page of %d tools", len(page.Tools))
			}
			sizes = append(sizes, sizeOf(t, page)/4)
			for _, tool := range page.Tools {
				parts[0] += len(tool.Description) / 4
				parts[1] += sizeOf(t, tool.InputSchema) / 4
				parts[2] += sizeOf(t, tool.OutputSchema) / 4
				parts[3] += sizeOf(t, tool) / 4
			}
			if params.Cursor = page.NextCursor; params.Cursor == "" {
				break
			}
		}
		all := 0
		for _, size := range sizes {
			all += size
		}
		t.Logf("%s: %d tokens in pages of %v: descriptions %d, inputs %d, outputs %d, all %d", c.as,
			all, sizes, parts[0], parts[1], parts[2], parts[3])
		if all > c.all || sizes[0] > c.first {
			t.Errorf("%s: %d tokens, at most %d, and on the first page %d, at most %d", c.as, all,
				c.all, sizes[0], c.first)
		}
	}
}

func sizeOf(t *testing.T, value any) int {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// TestPagesOfTools: the first page has the tools that read pages, each tool is on one page, and an
// invalid cursor is refused.
func TestPagesOfTools(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	first, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range first.Tools {
		names = append(names, tool.Name)
	}
	for _, name := range []string{"svc_preview_scraper_from_url", "svc_create_scraper_v2",
		"svc_run_scraper", "svc_run_scraper_url_list", "svc_stream_scraper_job", "svc_get_data",
		"svc_list_groups", "svc_put_group", "svc_list_scraper_job_errors"} {
		if !slices.Contains(names, name) {
			t.Errorf("the first page lacks %s", name)
		}
	}
	second, err := a.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: first.NextCursor})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range second.Tools {
		if slices.Contains(names, tool.Name) {
			t.Errorf("%s is on two pages", tool.Name)
		}
	}
	for _, wrong := range []string{"x", "-1", "0", "1e3"} {
		_, err := a.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: wrong})
		if err == nil || !strings.Contains(err.Error(), "cursor") {
			t.Errorf("the cursor %q: %v", wrong, err)
		}
	}
}

// ofHTTP matches HTTP terms that a tool's caller cannot use: methods, headers, queries, bodies.
var ofHTTP = regexp.MustCompile(`\bHTTP\b|\b(GET|PUT|POST|DELETE)\b|\?\w+=|\bX-[A-Z]|` +
	`\bContent-[A-Z]|JSON body|\b[Tt]he (full )?body\b|Events named|Idempotency-Key|Shoal-Reason|` +
	`/api/|query parameters|same query|[Ss]treamed|answers 20[0-9]|\b408\b|equal parameters`)

// TestToolsSpeakOfArguments: descriptions of tools, short and full, speak of arguments and not of
// HTTP.
func TestToolsSpeakOfArguments(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	known := tools(t, a)
	if len(known) < 100 {
		t.Errorf("only %d tools are listed", len(known))
	}
	for name, tool := range known {
		read, err := a.ReadResource(t.Context(),
			&mcp.ReadResourceParams{URI: "shoal://tools/" + name})
		if err != nil {
			t.Fatal(err)
		}
		var full struct {
			Description string
			InputSchema json.RawMessage
		}
		if err := json.Unmarshal([]byte(read.Contents[0].Text), &full); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{tool.Description, sayOf(t, tool), full.Description,
			string(full.InputSchema)} {
			if at := ofHTTP.FindStringIndex(text); at != nil {
				t.Errorf("%s speaks of %q: %s", name, text[at[0]:at[1]],
					text[max(0, at[0]-80):min(len(text), at[1]+80)])
			}
		}
	}
}

// TestToolsOfThePlan: tools that the plan lacks are not listed, and are refused anyway.
func TestToolsOfThePlan(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.ChooseFree{Customer: "alice"})
	a := r.connect(t, apitest.LLM, "", nil)
	known := tools(t, a)
	if known["svc_harvest_sitemaps"] != nil || known["svc_list_sitemaps"] == nil {
		t.Errorf("other tools are listed than the plan has")
	}
	a.refused("svc_harvest_sitemaps", args{"scraperId": r.scraper}, "feature_not_in_plan")
}

// TestPartsOfSchemasAreSaidOnce: a tool that omits a component refers to a tool that describes it
// and that the caller sees, too.
func TestPartsOfSchemasAreSaidOnce(t *testing.T) {
	r := start(t)
	seen := 0
	for _, as := range []string{apitest.LLM, apitest.Reader} {
		known := tools(t, r.connect(t, as, "", nil))
		for name, tool := range known {
			text, err := json.Marshal(tool.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			for _, after := range strings.Split(string(text), "As in ")[1:] {
				seen++
				other, _, _ := strings.Cut(after, `"`)
				if known[other] == nil || strings.Contains(sayOf(t, known[other]), "As in "+name) {
					t.Errorf("%s of %s is described nowhere for %s", name, other, as)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no schema leads to another")
	}
}

func sayOf(t *testing.T, tool *mcp.Tool) string {
	t.Helper()
	text, err := json.Marshal(tool.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestToolInFull: a resource shows everything that the list leaves out of a tool.
func TestToolInFull(t *testing.T) {
	r := start(t)
	read := func(as, name string) (string, error) {
		a := r.connect(t, as, "", nil)
		told, err := a.ReadResource(t.Context(),
			&mcp.ReadResourceParams{URI: "shoal://tools/" + name})
		if err != nil {
			return "", err
		}
		return told.Contents[0].Text, nil
	}
	full, err := read(apitest.LLM, "svc_create_scraper")
	if err != nil || !strings.Contains(full, `"SourceConfigInput"`) {
		t.Errorf("%v: %.500s", err, full)
	}
	for _, c := range [][2]string{{apitest.Reader, "svc_create_scraper"},
		{apitest.LLM, "svc_nothing"}, {apitest.LLM, "svc_generate_key"}} {
		if _, err := read(c[0], c[1]); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("%s for %s: %v", c[1], c[0], err)
		}
	}
}
