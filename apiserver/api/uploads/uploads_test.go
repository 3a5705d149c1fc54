package uploads_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/upload"
	"shoal.dev/shoal/pkg/work"
)

const (
	csv   = "text/csv"
	jsonl = "application/x-ndjson"
	xlsx  = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// rig is a server that accepts files. On request it does the work of the ingest role.
type rig struct {
	*apitest.Server
	store rowstore.Store
	blobs *blobstore.Store
	group ids.ID
}

func start(t *testing.T, options ...apitest.Option) *rig {
	t.Helper()
	r := &rig{store: apitest.NewStore(t)}
	var err error
	if r.blobs, err = blobstore.OpenDirectory(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Server = apitest.Start(t, append([]apitest.Option{apitest.WithStore(r.store),
		func(config *apiserver.Config) { config.Blobs = r.blobs }}, options...)...)
	r.group = r.NewGroup(t, "alice", "files")
	return r
}

// imports imports a file.
func (r *rig) imports(t *testing.T, job string) {
	t.Helper()
	id, err := ids.Parse(job)
	if err != nil {
		t.Fatal(err)
	}
	kind := ingest.Import(ingest.ImportConfig{Client: r.Client, Store: r.store,
		History: client.NewHistory(r.store), Files: r.blobs, IDs: r.IDs, Clock: r.Clock,
		Dir: t.TempDir()})
	if _, err := kind.Step(t.Context(), work.Item{ID: id, Customer: "alice"}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) files(t *testing.T) int {
	t.Helper()
	page, err := r.blobs.List(t.Context(), blobstore.Uploads, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Blobs)
}

// first is the upload of a first file.
func (r *rig) first(name, format, media, file string) apitest.Scenario {
	return apitest.Scenario{Name: name, As: apitest.User, Status: 201, Body: file,
		Header: map[string]string{"Content-Type": media},
		Do: "POST /api/scraper/group/" + r.group.String() + "/file-scraper?" +
			url.Values{"name": {name}, "format": {format}}.Encode()}
}

// next is the upload of another file.
func next(scraper, query, media, file string) apitest.Scenario {
	return apitest.Scenario{Name: "next " + query, As: apitest.User, Status: 200, Body: file,
		Header: map[string]string{"Content-Type": media},
		Do:     "POST /api/scraper/" + scraper + "/file?" + query}
}

// refused is a scenario that must fail with a code.
func refused(name string, sc apitest.Scenario, status int, code string) apitest.Scenario {
	sc.Name, sc.Status, sc.Code = name, status, code
	return sc
}

func (r *rig) rows(t *testing.T, query string, want ...string) {
	t.Helper()
	a := r.Call(t, apitest.Scenario{As: apitest.User,
		Do: "GET /api/scraper/data/group/" + r.group.String() + "?sort=a&" + query})
	got := []string{}
	for n := range want {
		got = append(got, a.Text(fmt.Sprintf("content.%d.a", n)))
	}
	if total, _ := a.At("totalElements"); total != float64(len(want)) ||
		strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: %s, want %v", query, a.Body, want)
	}
}

func book(t *testing.T, rows ...[]any) []byte {
	t.Helper()
	f := excelize.NewFile()
	for i, row := range rows {
		if err := f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := f.Write(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A file of each format becomes the rows of its scraper, free of charge. The next file replaces it
// all at once.
func TestUpload(t *testing.T) {
	for format, c := range map[string]struct {
		media string
		files []string
	}{
		"csv":   {csv, []string{"a,b\n1,x\n2,\n", "a\n7\n"}},
		"jsonl": {"application/jsonl", []string{"{\"a\":1,\"b\":\"x\"}\n{\"a\":\"2\"}", "{\"a\":7}"}},
		"xlsx": {xlsx, []string{string(book(t, []any{"a", "b"}, []any{"1", "x"}, []any{2})),
			string(book(t, []any{"a"}, []any{7}))}},
	} {
		t.Run(format, func(t *testing.T) {
			r := start(t)
			before := r.Client.View().Wallet("alice")
			made := r.Call(t, r.first(" prices ", format, c.media, c.files[0]))
			scraper, job := made.Text("scraper.id"), made.Text("jobId")
			if made.Status != 201 || made.Text("scraper.name") != "prices" ||
				made.Text("scraper.type") != "FILE" ||
				made.Text("scraper.lastRunState") != "RUNNING" {
				t.Fatalf("%d %s", made.Status, made.Body)
			}
			if kept, _ := made.At("scraper.effectiveRetentionCount"); kept != float64(1) {
				t.Errorf("%v files are kept", kept)
			}
			r.rows(t, "")
			r.rows(t, "isLastRun=true")
			r.imports(t, job)
			r.rows(t, "", "1", "2")
			r.rows(t, "isLastRun=true", "1", "2")
			r.Clock.Advance(1e9)
			sent := r.Call(t, next(scraper, "format="+format+"&keyColumn=a", c.media, c.files[1]))
			used, known := sent.At("keyColumnUsed")
			if sent.Status != 200 || used != nil || !known {
				t.Fatalf("%d %s", sent.Status, sent.Body)
			}
			r.rows(t, "", "1", "2")
			r.rows(t, "isLastRun=true", "1", "2")
			r.imports(t, sent.Text("jobId"))
			r.rows(t, "", "7")
			r.rows(t, "isLastRun=true", "7")
			r.Run(t, apitest.Scenario{Name: "history", As: apitest.Reader, Status: 200,
				Do: "GET /api/scraper/load-history", Has: map[string]any{"totalElements": 2,
					"content.0.state": "COMPLETED", "content.0.itemsQuantity": 1,
					"content.1.itemsQuantity": 2, "content.1.chargedMicros": 0,
					"content.1.errorMessage": nil}},
				apitest.Scenario{Name: "scraper", As: apitest.Reader, Status: 200,
					Do:  "GET /api/scraper/" + scraper,
					Has: map[string]any{"lastRunState": "COMPLETED"}})
			if after := r.Client.View().Wallet("alice"); *after != *before {
				t.Errorf("the wallet was %+v and is %+v", before, after)
			}
			if n := r.files(t); n != 0 {
				t.Errorf("%d files are left", n)
			}
		})
	}
}

// The JSON form accepts the same files.
func TestUploadAsJSON(t *testing.T) {
	r := start(t)
	form := func(members map[string]any) string {
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	sheet := base64.StdEncoding.EncodeToString(book(t, []any{"a"}, []any{7}))
	create := "POST /api/scraper/group/" + r.group.String() + "/file-scraper"
	made := r.Call(t, apitest.Scenario{As: apitest.User, Do: create,
		Body: form(map[string]any{"name": "prices", "format": "csv", "content": "a\n1\n"})})
	if made.Status != 201 {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	r.imports(t, made.Text("jobId"))
	r.rows(t, "", "1")
	r.Clock.Advance(1e9)
	send := apitest.Scenario{As: apitest.User, Status: 200,
		Do: "POST /api/scraper/" + made.Text("scraper.id") + "/file"}
	send.Body = form(map[string]any{"format": "xlsx", "content": sheet, "keyColumn": "a"})
	sent := r.Call(t, send)
	r.imports(t, sent.Text("jobId"))
	r.rows(t, "", "7")
	of := func(members map[string]any) apitest.Scenario {
		return apitest.Scenario{As: apitest.User, Do: create, Body: form(members)}
	}
	long := of(map[string]any{"name": "n", "format": "csv", "content": strings.Repeat("x", 2e6)})
	r.Run(t,
		refused("no Base64", of(map[string]any{"name": "n", "format": "xlsx", "content": "?"}), 400,
			"BAD_FORMAT"),
		refused("a format that is none",
			of(map[string]any{"name": "n", "format": "xls", "content": "x"}), 400, "BAD_FORMAT"),
		refused("without content", of(map[string]any{"name": "n", "format": "csv"}), 400,
			"invalid_request"),
		refused("too long", long, 413, "payload_too_large"),
		refused("a member of the other route",
			of(map[string]any{"name": "n", "format": "csv", "content": "x", "keyColumn": "a"}), 400,
			"unknown_field"))
	if r.Client.View().UploadByName("alice", r.group, "n") != nil || r.files(t) != 0 {
		t.Error("a call that was refused has made something")
	}
}

// Files are refused with the right code, also as a check, and nothing is created.
func TestUploadsThatAreRefused(t *testing.T) {
	r := start(t)
	made := r.Call(t, r.first("prices", "csv", csv, "a\n1\n"))
	scraper := made.Text("scraper.id")
	busy := next(scraper, "format=csv", csv, "a\n")
	taken := refused("name taken", r.first("prices", "csv", csv, "a\n"), 409, "NAME_TAKEN")
	taken.Has = map[string]any{"scraperId": scraper, "type": "FILE"}
	product := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "product", Type: model.SingleProduct}}
	r.Client.Must(t, product)
	other := refused("name of another type", r.first("product", "csv", csv, "a\n"), 409,
		"NAME_TAKEN")
	other.Has = map[string]any{"scraperId": product.ID, "type": "SINGLE_PRODUCT"}
	foreign := r.first("x", "csv", csv, "a\n")
	foreign.As = apitest.Other
	reader := r.first("x", "csv", csv, "a\n")
	reader.As = apitest.Reader
	for _, sc := range []apitest.Scenario{taken, other,
		refused("importing", busy, 409, "ALREADY_RUNNING"),
		refused("no upload's scraper", next(product.ID.String(), "format=csv", csv, "a\n"), 400,
			"invalid_request"),
		refused("no scraper", next(r.IDs.New().String(), "format=csv", csv, "a\n"), 404,
			"scraper_not_found"),
		refused("another customer's group", foreign, 400, "not_found"),
		refused("a key that reads", reader, 403, "scope_rejected"),
		refused("another Content-Type", r.first("x", "csv", "text/plain", "a\n"), 415,
			"unsupported_media_type"),
		refused("that of another format", r.first("x", "jsonl", csv, "a\n"), 415,
			"unsupported_media_type"),
		refused("another format", r.first("x", "xls", csv, "a\n"), 400, "BAD_FORMAT"),
		refused("no name", r.first(" ", "csv", csv, "a\n"), 400, "invalid_request"),
		refused("a long name", r.first(strings.Repeat("x", 201), "csv", csv, "a\n"), 400,
			"invalid_request"),
	} {
		r.Run(t, sc)
		check := sc
		check.Name, check.Body = sc.Name+", checked", ""
		check.Do += "&check=true"
		r.Run(t, check)
	}
	r.imports(t, made.Text("jobId"))
	r.Clock.Advance(1e9)
	checked := r.first("new", "csv", csv, "")
	checked.Do, checked.Status = checked.Do+"&check=true", 204
	again := next(scraper, "format=csv&check=true", csv, "")
	again.Status = 204
	r.Run(t, checked, again,
		refused("a check with a body", next(scraper, "format=csv&check=true", csv, "a"), 400,
			"invalid_request"))
	r.Client.Short(t, "voter-1")
	r.Run(t, refused("no space", r.first("x", "csv", csv, "a\n"), 503, "out_of_space"),
		refused("no space for the next", next(scraper, "format=csv", csv, "a\n"), 503,
			"out_of_space"))
	r.Client.Short(t, "")
	if r.Client.View().UploadByName("alice", r.group, "x") != nil ||
		r.Client.View().UploadByName("alice", r.group, "new") != nil || r.files(t) != 0 {
		t.Error("a call that was refused has made something")
	}
}

// A plan without room for another scraper refuses its file, also as a check.
func TestPlansCapUploads(t *testing.T) {
	r := start(t, func(config *apiserver.Config) {
		config.Plans = []byte(`[{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": [],
			"limits": {"MAX_SCRAPERS": 1}}]`)
	})
	r.Client.Must(t, client.ChooseFree{Customer: "alice"})
	r.Call(t, r.first("one", "csv", csv, "a\n1\n"))
	two := refused("two", r.first("two", "csv", csv, "a\n1\n"), 402, "plan_limit_reached")
	check := two
	check.Name, check.Do, check.Body = "two, checked", two.Do+"&check=true", ""
	r.Run(t, two, check)
	if r.files(t) != 1 {
		t.Error("the file of a call that was refused is kept")
	}
}

// Calls that launch runs skip or refuse an upload's scraper.
func TestUploadsAreNotRun(t *testing.T) {
	r := start(t)
	made := r.Call(t, r.first("prices", "csv", csv, "a\n1\n"))
	r.imports(t, made.Text("jobId"))
	scraper := made.Text("scraper.id")
	r.Run(t, apitest.Scenario{Name: "run", As: apitest.User, Do: "POST /api/scraper/" + scraper +
		"/run", Status: 400, Code: "type_not_runnable"},
		apitest.Scenario{Name: "group", As: apitest.User, Status: 200,
			Do:  "POST /api/scraper/group/" + r.group.String() + "/run",
			Has: map[string]any{"skipped.0.reason": "FILE", "skipped.0.scraperId": scraper}})
}

// A repeated call with the same key gets the first answer, and only one file is kept.
func TestUploadIsRepeated(t *testing.T) {
	r := start(t)
	call := r.first("prices", "csv", csv, "a\n1\n")
	call.Header["Idempotency-Key"] = "one"
	one, two := r.Call(t, call), r.Call(t, call)
	if one.Status != 201 || two.Status != 201 || one.Text("jobId") != two.Text("jobId") ||
		two.Header.Get("Idempotency-Replayed") != "true" || r.files(t) != 1 {
		t.Errorf("%s, then %s, and %d files", one.Body, two.Body, r.files(t))
	}
	for range 2 {
		other := r.first("prices", "csv", csv, "a\n2\n")
		other.Header["Idempotency-Key"] = "one"
		r.Run(t, refused("another file of the length", other, 422, "idempotency_key_reused"))
	}
	if again := r.Call(t, call); again.Status != 201 {
		t.Errorf("the first file again: %s", again.Body)
	}
	taken := call
	taken.Header = map[string]string{"Content-Type": csv, "Idempotency-Key": "two"}
	r.Run(t, refused("under another key", taken, 409, "NAME_TAKEN"))
	if claims := r.Client.View().ClaimsUnderWay("test"); len(claims) != 0 {
		t.Errorf("claims %v stay", claims)
	}
}

// A server without a blob store refuses files.
func TestNoUploadsWithoutABlobStore(t *testing.T) {
	r := start(t, func(config *apiserver.Config) { config.Blobs = nil })
	r.Run(t, refused("file", r.first("x", "csv", csv, "a\n"), 404, "uploads_not_taken"))
}

// An operator lowers the size limits of one customer's files. Other customers' limits stay.
func TestLimitsOfACustomer(t *testing.T) {
	r := start(t)
	limit := func(body string) apitest.Scenario {
		return apitest.Scenario{Name: "limit " + body, As: apitest.Admin, Status: 200, Body: body,
			Do: "PUT /api/admin/customers/alice/upload-limits"}
	}
	parameters := apitest.Scenario{Name: "parameters", As: apitest.Reader, Status: 200,
		Do: "GET /api/scraper/config/parameters"}
	lowered := parameters
	lowered.Has = map[string]any{"maxUploadBytes": map[string]any{"csv": 10, "jsonl": 10,
		"xlsx": 36_000_000}, "maxHeavyImports": 1, "maxUploadSeconds": 3600}
	sheet := map[string]any{"name": "s", "format": "xlsx",
		"content": base64.StdEncoding.EncodeToString(book(t, []any{"a"}))}
	text, err := json.Marshal(sheet)
	if err != nil {
		t.Fatal(err)
	}
	asJSON := apitest.Scenario{As: apitest.User, Status: 201, Body: string(text),
		Do: "POST /api/scraper/group/" + r.group.String() + "/file-scraper"}
	whole := map[string]any{"csv": 200_000_000, "jsonl": 200_000_000, "xlsx": 36_000_000}
	set, both := limit(`{"maxBytes":10}`), limit(`{"maxBytes":10,"maxSheetBytes":10}`)
	set.Has = map[string]any{"csv": 10, "jsonl": 10, "xlsx": 36_000_000}
	unset := limit(`{}`)
	unset.Has = map[string]any{"": whole}
	nobody := limit(`{}`)
	nobody.Do, nobody.Status, nobody.Code = "PUT /api/admin/customers/nobody/upload-limits", 400,
		"not_found"
	mine := limit(`{}`)
	mine.As, mine.Status, mine.Code = apitest.User, 401, "unauthorized"
	r.Run(t, set, lowered, r.first("ten", "csv", csv, "a\n1234567\n"),
		refused("eleven", r.first("eleven", "csv", csv, "a\n12345678\n"), 413,
			"payload_too_large"),
		both, refused("a sheet in JSON", asJSON, 413, "payload_too_large"), unset, asJSON, nobody,
		mine)
}

// The figures for all uploads are settings.
func TestSettingsOfUploads(t *testing.T) {
	r := start(t)
	put := func(body string, status int, has map[string]any) apitest.Scenario {
		return apitest.Scenario{Name: body, As: apitest.Admin, Status: status, Has: has,
			Do: "PUT /api/admin/settings", Body: `{"uploads":` + body + `}`}
	}
	made := r.Call(t, r.first("prices", "csv", csv, "a\n1\n"))
	send := next(made.Text("scraper.id"), "format=csv", csv, "a\n2\n")
	r.Run(t, put(`{"maxHeavyImports":2,"maxUploadSeconds":60,"holdMinutes":1}`, 200,
		map[string]any{"uploads.maxHeavyImports": 2, "uploads.holdMinutes": 1}),
		put(`{"maxUploadSeconds":3601}`, 400, nil), put(`{"maxHeavyImports":17}`, 400, nil),
		apitest.Scenario{Name: "parameters", As: apitest.Reader, Status: 200,
			Do: "GET /api/scraper/config/parameters", Has: map[string]any{"maxHeavyImports": 2,
				"maxUploadSeconds": 60}},
		refused("held", send, 409, "ALREADY_RUNNING"))
	r.Clock.Advance(time.Minute)
	r.Run(t, send, put(`{}`, 200, map[string]any{"uploads": map[string]any{"maxHeavyImports": 1,
		"maxUploadSeconds": 3600, "holdMinutes": 30}}))
}

// A name is measured without the spaces around it, as it is stored.
func TestNamesAreMeasuredTrimmed(t *testing.T) {
	r := start(t)
	name := strings.Repeat("é", upload.MaxScraper)
	made := r.first("     "+name+"  ", "csv", csv, "a\n1\n")
	made.Has = map[string]any{"scraper.name": name}
	r.Run(t, made, refused("too long", r.first(" "+name+"x", "csv", csv, "a\n"), 400,
		"invalid_request"), refused("blank", r.first(strings.Repeat(" ", 300), "csv", csv, "a\n"),
		400, "invalid_request"))
}
