package extract

import (
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/hostile"
)

// Bounds for reading any one page: processor time, and memory beside the page. A fifth of the
// memory may be uncollected garbage. The costliest are expressions that look back on a page with
// the maximum number of elements: 66 MB, 16 of them positions.
const (
	hostileTime   = 3 * time.Second
	hostileMemory = 72 << 20
)

// hostileRecipes returns recipes of every type, with the costliest selectors.
func hostileRecipes() map[string]model.Recipe {
	text := func(selectors ...string) []model.Field {
		var fields []model.Field
		for _, s := range selectors {
			fields = append(fields,
				model.Field{Name: "f" + string(rune('a'+len(fields))), Selector: s,
					Kind: model.Text})
		}
		return fields
	}
	schema := []byte(`{"type":"object","properties":{"name":{"type":"string"},"price":{"type":"number"},"sku":{"type":"string"},
		"images":{"type":"array","items":{"type":"string"}}},"required":["name"]}`)
	return map[string]model.Recipe{
		"CSS": {Type: model.MultipleProducts,
			Fields: text("p", "div a[href]", "li > h1 + dd", "div div div b")},
		"CSS that looks back": {Type: model.SingleProduct,
			Fields: text("p ~ p ~ p b", "div:has(a) b", "p:nth-last-child(7)",
				":not(p):last-of-type",
				"*:contains('zzz')")},
		"XPath": {Type: model.MultipleProducts, Fields: text("//p", "//div//a/@href", "//td[1]")},
		"XPath that looks back": {Type: model.SingleProduct,
			Fields: text("//*[count(preceding::*) > 99]", "//*//*//*[last()]",
				"//*[count(preceding-sibling::*) > count(following-sibling::node())]",
				"//*/preceding-sibling::*[last()]/following::node()[last()]",
				"string(//body)", "//*[contains(., 'zzz')]", "count(//*[. = //b])")},
		"JSONPath": {Type: model.MultipleProducts, Fields: text("$.items[*].a", "$.items[*].b")},
		"JSONPath into pages": {Type: model.MultipleProducts,
			Fields: text("$.embedded..a", "$.embedded..b")},
		"JSONPath that looks everywhere": {Type: model.SingleProduct,
			Fields: text("$..a", "$..[?@.a > 0].b", "$..*..*..a", "$..[?match(@, 'x.*y.*z')]",
				"$[?count($..*) > 1]")},
		"LD+JSON": {Type: model.ApplicationLDJSON, HiddenData: true},
		"schema":  {Type: model.AIConf, Schema: schema},
		"article": {Type: model.AIConf, Schema: []byte(`{"properties":{"title":{},"author":{},` +
			`"datePublished":{"type":"string","format":"date"},"articleBody":{}}}`)},
		"contacts": {Endpoint: model.WebsiteContacts},
		"product":  {Type: model.Marketplace, Endpoint: model.ProductPageTag},
		"products": {Type: model.Marketplace, Endpoint: model.ProductListTag},
		"results": {Type: model.SearchEngineSearch, Endpoint: model.SearchTag,
			Search: &model.SearchEngine{Name: "e", URL: "http://e.example/?q={query}"}},
		"detection":              {Type: model.Detection, HiddenData: true},
		"detection of a command": {Type: model.Detection, Curl: "curl http://a.example/"},
		"next link": {Type: model.MultipleProducts, Fields: text("p"),
			Pagination: &model.Pagination{Type: model.NextLink, Selector: "//a[@rel='next']"}},
	}
}

// TestEveryTypeOnHostilePages: each type reads any page in bounded time and memory. The cost also
// depends on the machine's load, so only `make bounds` checks the bounds; other runs read only the
// pages' beginnings.
func TestEveryTypeOnHostilePages(t *testing.T) {
	measured := os.Getenv("SHOAL_BOUNDS_SUITE") != ""
	for _, p := range hostile.Pages() {
		body := []byte(p.Body())
		if !measured {
			body = body[:min(len(body), beginning())]
		}
		t.Run(p.Name, func(t *testing.T) {
			for name, recipe := range hostileRecipes() {
				extractor, err := Compile(recipe)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				page := Page{URL: "http://a.example/", Asked: "http://a.example/",
					ContentType: p.ContentType, Body: body, At: time.Unix(1_800_000_000, 0)}
				read := func() {
					result, extractErr := extractor.Extract(page)
					if extractErr == nil && result.Ask != nil {
						_, extractErr = extractor.Extract(page, Page{Code: fault.PageTimeout})
					}
					err = extractErr
				}
				var took time.Duration
				var used uint64
				if measured {
					took, used = measure(read)
				} else {
					read()
				}
				if err != nil && fault.CodeOf(err) == fault.Internal {
					t.Errorf("%s: the error has no code: %v", name, err)
				}
				if took > hostileTime {
					t.Errorf("%s took %v", name, took.Round(time.Millisecond))
				}
				if used > hostileMemory {
					t.Errorf("%s took %d MB", name, used>>20)
				}
			}
		})
	}
}

// beginning is how many bytes of a page are read when nothing is measured.
func beginning() int {
	if testing.Short() {
		return 4_000
	}
	return 50_000
}

// measure returns the processor time that do takes and the peak memory in use meanwhile.
func measure(do func()) (took time.Duration, memory uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before, most, began := stats.HeapAlloc+stats.StackInuse, uint64(0), processTime()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return processTime() - began, most - min(most, before)
		case <-ticker.C:
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapAlloc+stats.StackInuse)
		}
	}
}

func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
