package uploads_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/ingest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// adds imports a file that is added to others, in as many steps as needed.
func (r *rig) adds(t *testing.T, job string) {
	t.Helper()
	id, err := ids.Parse(job)
	if err != nil {
		t.Fatal(err)
	}
	kind := ingest.Import(ingest.ImportConfig{Client: r.Client, Store: r.store,
		History: client.NewHistory(r.store), Files: r.blobs, IDs: r.IDs, Clock: r.Clock,
		Dir: t.TempDir()})
	item := work.Item{ID: id, Customer: "alice"}
	for range 5 {
		outcome, err := kind.Step(t.Context(), item)
		if err != nil {
			t.Fatal(err)
		}
		if item.Progress = outcome.Progress; outcome.End == work.Ended {
			r.Clock.Advance(1e9)
			return
		}
	}
	t.Fatal("it does not end")
}

// The key column is chosen in the order of specification 4.9, and the first choice stays.
func TestKeyColumns(t *testing.T) {
	for name, c := range map[string]struct {
		stored, matched, query string
		used, code             string
	}{
		"matched first":           {`{"id":"1","EAN":"2","m":"3"}`, "m", "&keyColumn=id", "m", ""},
		"as a match will find it": {`{"id":"1","UPC":"2"}`, "", "&keyColumn=id", "UPC", ""},
		"in the last row alone": {strings.Repeat(`{"k":"1"}`+"\n", 12_000) +
			`{"MPN":"2","url":"1"}`, "", "&keyColumn=k", "MPN", ""},
		"EAN before id":       {`{"id":"1","EAN":"2"}`, "", "", "EAN", ""},
		"in any case":         {`{"gTiN":"1","x":"2"}`, "", "&keyColumn=x", "gTiN", ""},
		"EAN13":               {`{"ean13":"1"}`, "", "", "ean13", ""},
		"barcode":             {`{"BARCODE":"1","url":"2"}`, "", "", "BARCODE", ""},
		"sku":                 {`{"sku":"1","mpn":"2"}`, "", "", "sku", ""},
		"mpn":                 {`{"mpn":"1","product_id":"2"}`, "", "", "mpn", ""},
		"product_id":          {`{"Product_ID":"1","id":"2"}`, "", "", "Product_ID", ""},
		"id":                  {`{"ID":"1","url":"2"}`, "", "", "ID", ""},
		"url":                 {`{"URL":"1"}`, "", "", "URL", ""},
		"the query":           {`{"k":"1"}`, "", "&keyColumn=k", "k", ""},
		"none":                {`{"k":"1"}`, "", "", "", "KEY_COLUMN_REQUIRED"},
		"not a column":        {`{"k":"1"}`, "", "&keyColumn=K", "", "KEY_COLUMN_INVALID"},
		"one of the server's": {`{"k":"1"}`, "", "&keyColumn=_jobId", "", "KEY_COLUMN_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			scraper, _ := r.file(t, "file", c.stored)
			id, err := ids.Parse(scraper)
			if err != nil {
				t.Fatal(err)
			}
			protect := client.ProtectGroup{Group: r.group}
			if c.matched != "" {
				protect.Columns = []client.KeyColumn{{Scraper: id, Column: c.matched}}
			}
			r.Client.Must(t, protect)
			send := next(scraper, "format=jsonl"+c.query, jsonl, c.stored)
			check := next(scraper, "format=jsonl&check=true"+c.query, jsonl, "")
			if check.Status = 204; c.code != "" {
				r.Run(t, refused("check", check, 400, c.code), refused("send", send, 400, c.code))
				if r.files(t) != 0 {
					t.Error("a refused file is kept")
				}
				return
			}
			send.Has = map[string]any{"keyColumnUsed": c.used}
			r.Run(t, check)
			r.adds(t, r.Call(t, send).Text("jobId"))
			again := next(scraper, "format=jsonl&keyColumn=other", jsonl, c.stored)
			again.Has = send.Has // once fixed, another one is ignored
			r.Run(t, again)
		})
	}
}

// If a scraper is protected while its next file arrives, its key column is the same as before.
func TestProtectedWhileAFileComes(t *testing.T) {
	r := start(t)
	scraper, _ := r.file(t, "file", `{"EAN":"1","a":"x"}`)
	line := `{"EAN":"2","a":"y"}` + "\n"
	file := line + strings.Repeat(" ", 2*prefetched)
	sent := len(file) - 1
	from, conn := r.dial(t, "/api/scraper/"+scraper+"/file?format=jsonl",
		fmt.Sprintf("Idempotency-Key: k\r\nContent-Type: %s\r\nContent-Length: %d", jsonl,
			len(file)), file[:sent])
	for ctx := t.Context(); len(r.Client.View().ClaimsUnderWay("test")) == 0 && ctx.Err() == nil; {
		runtime.Gosched() // the call has read the state by then
	}
	r.Client.Must(t, client.ProtectGroup{Group: r.group})
	if _, err := conn.Write([]byte(file[sent:])); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK ||
		!strings.Contains(string(body), `"keyColumnUsed":"EAN"`) {
		t.Errorf("%d %s %v", answer.StatusCode, body, err)
	}
}

// A protected scraper shows all its rows as those of its last run, each with its receipt. Its
// uploads wait for one another like spreadsheets do, whatever its retention is.
func TestProtectedRowsAreRead(t *testing.T) {
	r := start(t)
	scraper, first := r.file(t, "file", `{"id":"1","a":"x"}`)
	r.Client.Must(t, client.ProtectGroup{Group: r.group})
	r.rows(t, "isLastRun=true", "x")
	before := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data/group/" + r.group.String()}).Text("content.0._rowId")
	sent := r.Call(t, next(scraper, "format=jsonl", jsonl, `{"id":"2","a":"y"}`)).Text("jobId")
	id, err := ids.Parse(sent)
	if err != nil {
		t.Fatal(err)
	}
	if known := r.Client.View().Import(id); !known.Heavy || known.Key != "id" {
		t.Errorf("%+v", known)
	}
	r.adds(t, sent)
	r.rows(t, "", "x", "y")
	r.rows(t, "isLastRun=true", "x", "y")
	for _, run := range []string{first, sent} { // they count as one run
		for _, query := range []string{"", "&isLastRun=true", "&groupId=" + r.group.String()} {
			r.Run(t, apitest.Scenario{Name: "of a run" + query, As: apitest.User, Status: 200,
				Do:  "GET /api/scraper/data?jobId=" + run + query,
				Has: map[string]any{"items.0.a": "x", "items.1.a": "y", "hasMore": false}})
		}
	}
	rows := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do:  "GET /api/scraper/data/group/" + r.group.String() + "?sort=a",
		Has: map[string]any{"content.0._rowId": before, "content.0._jobId": first}})
	for _, row := range []string{before, rows.Text("content.1._rowId")} {
		r.Run(t, apitest.Scenario{Name: "receipt", As: apitest.User, Status: 200,
			Do: "GET /api/scraper/data/" + row + "/receipt"})
	}
	r.Run(t, apitest.Scenario{Name: "history", As: apitest.User, Status: 200,
		Do: "GET /api/scraper/load-history", Has: map[string]any{"totalElements": 2,
			"content.0.itemsQuantity": 2, "content.0.state": "COMPLETED"}})
}

// A row has its receipt as long as it lives, even when the record of its page has expired. A row
// that does not exist has none.
func TestReceiptsOutliveRecords(t *testing.T) {
	r := start(t)
	scraper, first := r.file(t, "file", `{"id":"1","a":"x"}`+"\n"+`{"id":"2","a":"y"}`)
	r.Client.Must(t, client.ProtectGroup{Group: r.group})
	r.Clock.Advance(80 * 24 * time.Hour)
	sent := r.Call(t, next(scraper, "format=jsonl", jsonl, `{"id":"3","a":"z"}`))
	r.adds(t, sent.Text("jobId"))
	rows := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data/group/" + r.group.String() + "?sort=a"})
	row := rows.Text("content.1._rowId")
	receipt := apitest.Scenario{Name: "receipt", As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data/" + row + "/receipt",
		Has: map[string]any{"rowId": row, "jobId": first, "scraperId": scraper,
			"groupId": r.group.String(), "scrapedAt": rows.Text("content.1._scrapedAt"),
			"rows": 2, "body": nil, "tries": []any{}}}
	r.Run(t, receipt)
	r.Clock.Advance(11 * 24 * time.Hour)
	kind := ingest.Expiry(ingest.ExpiryConfig{Store: r.store,
		Reruns: func(ids.ID) bool { return false },
		Safe:   func(context.Context) (time.Time, error) { return r.Clock.Now(), nil }})
	item := work.Item{Kind: work.Expire}
	for range 2 { // one step notes the time, the next one removes
		outcome, err := kind.Step(t.Context(), item)
		if err != nil {
			t.Fatal(err)
		}
		item.Progress = outcome.Progress
	}
	var id model.RowID
	if err := id.UnmarshalText([]byte(row)); err != nil {
		t.Fatal(err)
	}
	record, err := r.store.Record(t.Context(), id.Job, id.Unit)
	if err != nil || record != nil {
		t.Fatalf("the record is still there: %+v, %v", record, err)
	}
	none := id
	none.Place = 2
	r.Run(t, receipt, apitest.Scenario{Name: "of no row", As: apitest.User, Status: 400,
		Code: "not_found", Do: "GET /api/scraper/data/" + none.String() + "/receipt"},
		apitest.Scenario{Name: "body", As: apitest.User, Status: 404, Code: "body_not_kept",
			Do: "GET /api/scraper/data/" + row + "/receipt/body"})
}

// If a file replaces the one that a cursor reads, the cursor is refused. It never returns fewer
// rows. While the file is imported, or if it fails, the cursor continues.
func TestCursorsWhileFilesAreReplaced(t *testing.T) {
	r := start(t)
	scraper, job := r.file(t, "file", `{"id":"1","a":"x"}`+"\n"+`{"id":"2","a":"y"}`)
	_, otherJob := r.file(t, "other", `{"id":"1","a":"x"}`+"\n"+`{"id":"2","a":"y"}`)
	reads := map[string]string{"group": "groupId=" + r.group.String(),
		"latest":  "isLastRun=true&groupId=" + r.group.String(),
		"scraper": "scraperId=" + scraper, "run": "jobId=" + job, "other run": "jobId=" + otherJob}
	cursors := map[string]string{}
	for name, query := range reads {
		cursors[name] = r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
			Do: "GET /api/scraper/data?limit=1&" + query}).Text("nextCursor")
	}
	goOn := func(when string, ended bool) {
		for name, query := range reads {
			s := apitest.Scenario{Name: name + ", " + when, As: apitest.User, Status: 200,
				Do:  "GET /api/scraper/data?limit=1&" + query + "&cursor=" + cursors[name],
				Has: map[string]any{"items.0.a": "y"}}
			if ended && name != "other run" {
				s.Status, s.Code, s.Has = 400, "invalid_cursor", nil
			}
			r.Run(t, s)
		}
	}
	for _, sent := range []struct{ when, lines string }{{"failed", "no"}, {"replaced", `{"a":"z"}`}} {
		made := r.Call(t, next(scraper, "format=jsonl", jsonl, sent.lines))
		goOn("before it "+sent.when, false)
		r.imports(t, made.Text("jobId"))
		r.Clock.Advance(1e9)
		goOn(sent.when, sent.when == "replaced")
	}
}

// If a file is imported, a cursor continues if the scraper keeps all files that it reads. Otherwise
// it is refused, however many files are kept before and after.
func TestCursorsWhileFilesAreKept(t *testing.T) {
	all := []string{"group", "latest", "scraper", "first", "second"}
	for name, c := range map[string]struct {
		before, then, after int
		refused             []string
	}{
		"three of three":  {3, 3, 3, nil},
		"two of three":    {2, 2, 2, []string{"group", "scraper", "first"}},
		"fewer from then": {2, 1, 1, all},
		"fewer just then": {9, 1, 9, all},
		"two just then":   {3, 2, 9, []string{"group", "scraper", "first"}},
		"more from then":  {2, 3, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			keep := func(scraper ids.ID, count int) {
				r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: scraper,
					Count: count})
			}
			text, first := r.file(t, "file", `{"a":"1"}`+"\n"+`{"a":"2"}`)
			scraper, err := ids.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			add := func(lines string) (job string) {
				r.Clock.Advance(1e9)
				job = r.Call(t, next(text, "format=jsonl", jsonl, lines)).Text("jobId")
				r.imports(t, job)
				return job
			}
			keep(scraper, c.before)
			second := add(`{"a":"3"}` + "\n" + `{"a":"4"}`)
			reads := map[string]string{"group": "groupId=" + r.group.String(),
				"latest":  "isLastRun=true&groupId=" + r.group.String(),
				"scraper": "scraperId=" + text, "first": "jobId=" + first,
				"second": "jobId=" + second}
			cursors := map[string]string{}
			for name, query := range reads {
				cursors[name] = r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
					Do: "GET /api/scraper/data?limit=1&" + query}).Text("nextCursor")
			}
			keep(scraper, c.then)
			add(`{"a":"5"}`)
			keep(scraper, c.after)
			for name, query := range reads {
				s := apitest.Scenario{Name: name, As: apitest.User, Status: 200,
					Do:  "GET /api/scraper/data?limit=1&" + query + "&cursor=" + cursors[name],
					Has: map[string]any{"items.0.a": "2"}}
				if name == "latest" || name == "second" {
					s.Has["items.0.a"] = "4"
				}
				if slices.Contains(c.refused, name) {
					s.Status, s.Code, s.Has = 400, "invalid_cursor", nil
				}
				r.Run(t, s)
			}
		})
	}
}

// If a file is added, an open cursor is refused, and never returns fewer rows. Cursors of other
// scrapers continue.
func TestCursorsWhileFilesAreAdded(t *testing.T) {
	r := start(t)
	scraper, job := r.file(t, "file", `{"id":"1","a":"x"}`+"\n"+`{"id":"2","a":"y"}`)
	other, otherJob := r.file(t, "other", `{"id":"1","a":"x"}`+"\n"+`{"id":"2","a":"y"}`)
	reads := map[string]string{"group": "groupId=" + r.group.String(),
		"latest":  "isLastRun=true&groupId=" + r.group.String(),
		"scraper": "scraperId=" + scraper, "run": "jobId=" + job,
		"other": "scraperId=" + other, "other run": "jobId=" + otherJob}
	open := func() map[string]string {
		cursors := map[string]string{}
		for name, query := range reads {
			cursors[name] = r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
				Do: "GET /api/scraper/data?limit=1&" + query}).Text("nextCursor")
		}
		return cursors
	}
	goOn := func(name, cursor string, ended bool) {
		s := apitest.Scenario{Name: name, As: apitest.User, Status: 200,
			Do:  "GET /api/scraper/data?limit=1&" + reads[name] + "&cursor=" + cursor,
			Has: map[string]any{"items.0.a": "y"}}
		if ended {
			s.Status, s.Code, s.Has = 400, "invalid_cursor", nil
		}
		r.Run(t, s)
	}
	r.Client.Must(t, client.ProtectGroup{Group: r.group})
	for n := range 2 { // the first file that is added, and another one
		cursors := open()
		sent := r.Call(t, next(scraper, "format=jsonl", jsonl,
			fmt.Sprintf(`{"id":"%d","a":"z"}`, n+3))).Text("jobId")
		for name, cursor := range cursors {
			goOn(name, cursor, false)
		}
		r.adds(t, sent)
		for name, cursor := range cursors {
			goOn(name, cursor, name != "other" && name != "other run")
		}
		reads["run"] = "jobId=" + sent
	}
}
