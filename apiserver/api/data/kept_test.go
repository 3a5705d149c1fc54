package data_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

const keptPath = "/api/scraper/data/exports"

// keeper is a rig that keeps exports.
type keeper struct {
	*rig
	blobs *blobstore.Store
}

func startKeeper(t *testing.T) *keeper {
	t.Helper()
	return startKeeperOn(t, apitest.NewStore(t))
}

func startKeeperOn(t *testing.T, store rowstore.Store) *keeper {
	t.Helper()
	k := &keeper{}
	var err error
	if k.blobs, err = blobstore.OpenDirectory(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	k.rig = startOn(t, store, func(config *apiserver.Config) { config.Blobs = k.blobs })
	return k
}

// ask requests an export as somebody.
func (k *keeper) ask(t *testing.T, as, query string) ids.ID {
	t.Helper()
	a := k.Call(t, apitest.Scenario{As: as, Do: "POST " + keptPath + "?" + query})
	id, err := ids.Parse(a.Text("id"))
	if a.Status != 202 || err != nil || a.Text("state") != "WAITING" {
		t.Fatalf("%s: %d %s", query, a.Status, a.Body)
	}
	return id
}

// step does one step of work on an export. It dies at the point with number dies; 0: at none.
func (k *keeper) step(t *testing.T, id ids.ID, dies int) (end work.End, died bool) {
	t.Helper()
	defer func() {
		if value := recover(); value != nil {
			died = true
		}
	}()
	kind := k.API.KeptExports(func(string) {
		if dies--; dies == 0 {
			panic("dies")
		}
	})
	outcome, err := kind.Step(t.Context(), work.Item{ID: id, Kind: work.Export,
		Customer: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	return outcome.End, false
}

// files counts the files in the blob store.
func (k *keeper) files(t *testing.T) int {
	t.Helper()
	page, err := k.blobs.List(t.Context(), blobstore.Exports, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Blobs)
}

func (k *keeper) state(id ids.ID, has map[string]any) apitest.Scenario {
	return apitest.Scenario{Name: "state", As: apitest.Reader, Do: "GET " + keptPath + "/" +
		id.String(), Status: 200, Has: has}
}

func file(as string, id ids.ID, status int, header map[string]string) apitest.Scenario {
	return apitest.Scenario{Name: fmt.Sprint("file ", header), As: as,
		Do: "GET " + keptPath + "/" + id.String() + "/file", Status: status, Header: header}
}

// Each format is kept as it is exported, with the rows at the time of the call.
func TestKeptExports(t *testing.T) {
	for _, format := range []string{"csv", "jsonl", "xlsx", "parquet"} {
		t.Run(format, func(t *testing.T) {
			onStores(t, func(t *testing.T, store rowstore.Store) { keptAs(t, store, format) })
		})
	}
}

func keptAs(t *testing.T, store rowstore.Store, format string) {
	k := startKeeperOn(t, store)
	query := "format=" + format + "&groupId=" + k.group.String() + "&" +
		filters(`{"n":{"$gt":2}}`)
	want := k.Call(t, apitest.Scenario{As: apitest.User,
		Do: "GET /api/scraper/data/export?" + query})
	id := k.ask(t, apitest.User, query)
	k.rig.run(t, k.shop, `{"n":9}`) // too late for the export
	waits := file(apitest.User, id, 409, nil)
	waits.Code = "export_not_ready"
	k.Run(t, k.state(id, map[string]any{"state": "WAITING", "bytes": nil, "sha256": nil,
		"endedAt": nil, "groupId": k.group, "jobId": nil}), waits)
	if end, _ := k.step(t, id, 0); end != work.Ended {
		t.Fatal(end)
	}
	ready := file(apitest.Reader, id, 200, nil)
	ready.Headers = map[string]string{"Accept-Ranges": "bytes", "ETag": "*",
		"Content-Type": want.Header.Get("Content-Type"), "Content-Length": "*",
		"Content-Disposition": `attachment; filename="rows-` + id.String() + "." +
			format + `"`}
	ready.Check = func(t *testing.T, a apitest.Answer) {
		got, wanted := string(a.Body), string(want.Body)
		if format == "xlsx" || format == "parquet" {
			got, wanted = column(t, format, a.Body), column(t, format, want.Body)
		}
		if got != wanted || len(got) < 10 {
			t.Errorf("kept %s, exported %s", got, wanted)
		}
	}
	head := ready
	head.Do = strings.Replace(ready.Do, "GET", "HEAD", 1)
	head.Header = map[string]string{"Range": "bytes=1-2"} // HEAD ignores ranges
	head.Check = func(t *testing.T, a apitest.Answer) {
		whole := k.Call(t, ready)
		if len(a.Body) > 0 || a.Header.Get("Content-Length") !=
			strconv.Itoa(len(whole.Body)) || a.Header.Get("ETag") !=
			whole.Header.Get("ETag") {
			t.Errorf("HEAD says %v of %d bytes", a.Header, len(whole.Body))
		}
	}
	k.Run(t, head, ready, k.state(id, map[string]any{"state": "READY", "rows": 6,
		"errorCode": nil}),
		apitest.Scenario{Name: "listed", As: apitest.Reader, Do: "GET " + keptPath,
			Status: 200, Has: map[string]any{"0.id": id, "0.format": format}},
		apitest.Scenario{Name: "listed for others", As: apitest.Other,
			Do: "GET " + keptPath, Status: 200, Has: map[string]any{"": []any{}}})
	gone := file(apitest.Other, id, 400, nil)
	gone.Code = "not_found"
	missing := file(apitest.Other, k.IDs.New(), 400, nil)
	missing.Code = "not_found"
	k.Run(t, gone, missing)
	drop := apitest.Scenario{Name: "drop", Do: "DELETE " + keptPath + "/" + id.String(),
		Status: 400, Code: "not_found",
		Header: map[string]string{"Idempotency-Key": "drop"}}
	drop.As = apitest.Other
	k.Run(t, drop, ready)
	drop.As, drop.Status, drop.Code = apitest.User, 204, ""
	k.Run(t, drop, drop) // a repeated call
	if n := k.files(t); n != 0 || k.Client.View().Export(id) != nil {
		t.Errorf("%d files are left", n)
	}
}

// A kept export uses the categories at the time of the call, whatever happens to them.
func TestKeptExportsOfCategories(t *testing.T) {
	k := startKeeper(t)
	category := client.PutCategory{ID: k.IDs.New(), Customer: "alice", Group: k.group,
		Name: "large", Filters: []byte(`{"n":{"$gt":6}}`)}
	k.Client.Must(t, category)
	id := k.ask(t, apitest.User, "format=csv&fields=n&categories=large&groupId="+k.group.String())
	category.Filters = []byte(`{"n":{"$lt":6}}`)
	k.Client.Must(t, category)
	if end, _ := k.step(t, id, 0); end != work.Ended {
		t.Fatal(end)
	}
	if got := k.Call(t, file(apitest.User, id, 200, nil)); string(got.Body) != "n\n7\n8\n" {
		t.Errorf("%q", got.Body)
	}
}

// A kept export leaves out the same members as one that is sent.
func TestKeptExportsWithoutMembers(t *testing.T) {
	k := startKeeper(t)
	query := "without=n,_rowId&jobId=" + k.jobs[0].String()
	id := k.ask(t, apitest.User, query)
	if end, _ := k.step(t, id, 0); end != work.Ended {
		t.Fatal(end)
	}
	sent := k.Call(t, apitest.Scenario{As: apitest.User, Do: exportPath + "?" + query})
	kept := k.Call(t, file(apitest.User, id, 200, nil))
	if header, _, _ := strings.Cut(string(kept.Body), "\n"); string(kept.Body) !=
		string(sent.Body) || header != "name,_scrapedAt" {
		t.Errorf("%q is kept, %q is sent", kept.Body, sent.Body)
	}
	k.Run(t, apitest.Scenario{As: apitest.User, Do: "POST " + keptPath + "?fields=n&" + query,
		Status: 400, Code: "invalid_request", Has: map[string]any{"errors.0.field": "without"}})
}

// Ranges at their limits, by the rules of HTTP.
func TestRangesOfKeptExports(t *testing.T) {
	k := startKeeper(t)
	id := k.ask(t, apitest.User, "format=jsonl&jobId="+k.jobs[0].String())
	k.step(t, id, 0)
	whole := k.Call(t, file(apitest.User, id, 200, nil))
	all, tag := string(whole.Body), whole.Header.Get("ETag")
	n := len(all)
	if n < 20 {
		t.Fatalf("%q", all)
	}
	for _, c := range []struct {
		ranged, ifRange string
		status          int
		want            string // Content-Range of a 206
		from, to        int
	}{
		{"bytes=0-0", "", 206, fmt.Sprintf("bytes 0-0/%d", n), 0, 1},
		{"bytes=3-9", "", 206, fmt.Sprintf("bytes 3-9/%d", n), 3, 10},
		{"bytes=3-9", tag, 206, fmt.Sprintf("bytes 3-9/%d", n), 3, 10},
		{"bytes=3-9", `"other"`, 200, "", 0, n},
		{"bytes=5-", "", 206, fmt.Sprintf("bytes 5-%d/%d", n-1, n), 5, n},
		{"bytes=-4", "", 206, fmt.Sprintf("bytes %d-%d/%d", n-4, n-1, n), n - 4, n},
		{"bytes=-99999", "", 206, fmt.Sprintf("bytes 0-%d/%d", n-1, n), 0, n},
		{fmt.Sprintf("bytes=%d-", n-1), "", 206, fmt.Sprintf("bytes %d-%d/%d", n-1, n-1, n), n - 1,
			n},
		{fmt.Sprintf("bytes=2-%d", n+9), "", 206, fmt.Sprintf("bytes 2-%d/%d", n-1, n), 2, n},
		{fmt.Sprintf("bytes=%d-", n), "", 416, "", 0, 0},
		{"bytes=-0", "", 416, "", 0, 0},
		{"bytes=9-3", "", 200, "", 0, n}, {"bytes=a-b", "", 200, "", 0, n},
		{"bytes=+1-2", "", 200, "", 0, n}, {"bytes=-", "", 200, "", 0, n},
		{"rows=0-1", "", 200, "", 0, n}, {"bytes=0-1,3-4", "", 200, "", 0, n},
		{"BYTES=0-99999999999999999999", "", 206, fmt.Sprintf("bytes 0-%d/%d", n-1, n), 0, n},
		{"bytes=-99999999999999999999", "", 206, fmt.Sprintf("bytes 0-%d/%d", n-1, n), 0, n},
		{"bytes=99999999999999999999-", "", 416, "", 0, 0},
		{"bytes=0-1" + strings.Repeat(",3-4", 100), "", 200, "", 0, n},
	} {
		header := map[string]string{"Range": c.ranged}
		if c.ifRange != "" {
			header["If-Range"] = c.ifRange
		}
		part := file(apitest.User, id, c.status, header)
		part.Headers = map[string]string{"Content-Range": c.want, "ETag": tag}
		if c.status == 416 {
			part.Code = "range_not_satisfiable"
			part.Headers = map[string]string{"Content-Range": fmt.Sprintf("bytes */%d", n)}
		} else {
			part.Check = func(t *testing.T, a apitest.Answer) {
				if string(a.Body) != all[c.from:c.to] {
					t.Errorf("%q, want %q", a.Body, all[c.from:c.to])
				}
			}
		}
		k.Run(t, part)
	}
	same := file(apitest.User, id, 304, map[string]string{"If-None-Match": `"a", W/` + tag})
	same.Headers = map[string]string{"ETag": tag, "Content-Range": ""}
	k.Run(t, same, file(apitest.User, id, 200, map[string]string{"If-None-Match": `"a"`}))
	// Slots for long answers are released after any kind of answer.
	for range 30 {
		k.Run(t, same)
	}
}

// An export that is killed at any of its points and retried has one file, and so has one that two
// owners write at once.
func TestKeptExportIsWrittenOnce(t *testing.T) {
	for dies := 1; ; dies++ {
		k := startKeeper(t)
		id := k.ask(t, apitest.User, "groupId="+k.group.String())
		_, died := k.step(t, id, dies)
		if !died {
			if dies < 4 {
				t.Errorf("%d points are passed", dies-1)
			}
			break
		}
		k.step(t, id, 0)
		first := k.Client.View().Export(id)
		if first.State != client.ExportReady || first.Rows != 8 {
			t.Fatalf("killed at point %d: %+v", dies, first)
		}
		k.step(t, id, 0)
		if again := k.Client.View().Export(id); again.Blob != first.Blob {
			t.Errorf("done again, it is %+v", again)
		}
		k.Run(t, file(apitest.User, id, 200, nil))
	}
	k := startKeeper(t)
	id := k.ask(t, apitest.User, "groupId="+k.group.String())
	var owners sync.WaitGroup
	for range 3 {
		owners.Go(func() { k.step(t, id, 0) })
	}
	owners.Wait()
	if n := k.files(t); n != 1 {
		t.Errorf("%d files of one export", n)
	}
	k.Run(t, file(apitest.User, id, 200, nil))
}

// An export has the rows at the time of the call, or fails. Removals before or during the writing
// are detected.
func TestKeptExportOfRowsThatGo(t *testing.T) {
	for _, when := range []string{"before it is written", "while it is"} {
		t.Run(when, func(t *testing.T) {
			store := &scanned{Store: apitest.NewStore(t)}
			k := startKeeperOn(t, store)
			id := k.ask(t, apitest.User, "format=jsonl&groupId="+k.group.String())
			another := k.ask(t, apitest.User, "format=jsonl&jobId="+k.jobs[0].String())
			remove := func() {
				store.counted = nil
				if err := store.DeleteJob(t.Context(), k.jobs[1], false); err != nil {
					t.Error(err)
				}
			}
			if when == "while it is" {
				store.counted = remove
			} else {
				remove()
			}
			if end, _ := k.step(t, id, 0); end != work.Ended {
				t.Error(end)
			}
			k.Run(t, k.state(id, map[string]any{"state": "FAILED", "errorCode": "rows_gone",
				"errorMessage": "rows were removed before the file was written; ask again"}))
			if n := k.files(t); n != 0 {
				t.Errorf("%d files stand of what is not whole", n)
			}
			k.step(t, another, 0) // all of its rows exist
			k.Run(t, k.state(another, map[string]any{"state": "READY"}))
			again := k.ask(t, apitest.User, "format=jsonl&groupId="+k.group.String())
			k.step(t, again, 0)
			k.Run(t, k.state(again, map[string]any{"state": "READY", "rows": 6}))
		})
	}
}

// A caller who may no longer read the rows gets no file, whether the export was waiting or ready.
func TestKeptExportsOfWhoMayNotRead(t *testing.T) {
	k := startKeeper(t)
	k.share(t)
	query := "groupId=" + k.group.String()
	ready, waits := k.ask(t, apitest.Other, query), k.ask(t, apitest.Other, query)
	k.step(t, ready, 0)
	k.Run(t, file(apitest.Other, ready, 200, nil))
	k.Client.Must(t, client.RevokeShare{Customer: "alice", Group: k.group, Email: "bob@x.test"})
	k.step(t, waits, 0)
	if e := k.Client.View().Export(waits); e.State != client.ExportFailed ||
		e.Code != "not_found" {
		t.Errorf("once its share was revoked, it is %+v", e)
	}
	refused := file(apitest.Other, ready, 400, nil)
	refused.Code = "not_found"
	k.Run(t, refused, apitest.Scenario{Name: "listed", As: apitest.Other, Do: "GET " + keptPath,
		Status: 200, Has: map[string]any{"": []any{}}})
	keyed := k.ask(t, apitest.LLM, query)
	for _, key := range k.Client.View().Keys("alice") {
		if key.Name == apitest.LLM {
			k.Client.Must(t, client.RevokeKey{Customer: "alice", ID: key.ID})
		}
	}
	k.step(t, keyed, 0)
	k.Run(t, k.state(keyed, map[string]any{"state": "FAILED", "errorCode": "unauthorized",
		"bytes": nil}))
	k.Client.Must(t, client.BlockCustomer{Customer: "bob", By: "root"})
	if n := k.files(t); n != 1 {
		t.Errorf("%d files", n)
	}
}

// A program's export is available as long as the program may call.
func TestKeptExportsOfPrograms(t *testing.T) {
	k := startKeeper(t)
	access, session := auth.AccessStart+strings.Repeat("A", 52), client.Hash{2}
	k.Client.Must(t, client.CreateAccount{ID: ids.ID{2}, Customer: "alice", Email: "b@x.test"})
	k.Client.Must(t, client.OpenSession{Account: ids.ID{2}, Hash: session})
	k.Client.Must(t, client.IssueCode{Session: session, Scope: model.ScopeLLMFull})
	k.Client.Must(t, client.RedeemCode{Grant: ids.ID{3}, Access: auth.HashSession(access)})
	query := "groupId=" + k.group.String()
	ready, waits := k.ask(t, access, query), k.ask(t, access, query)
	k.step(t, ready, 0)
	k.Run(t, k.state(ready, map[string]any{"state": "READY"}))
	k.Client.Must(t, client.EndGrant{Customer: "alice", Grant: ids.ID{3}})
	k.step(t, waits, 0)
	k.Run(t, k.state(waits, map[string]any{"state": "FAILED", "errorCode": "unauthorized"}))
}

// slow is a blob store whose files end only on request.
type slow struct {
	*blobstore.Store
	begun chan struct{}
	goOn  chan struct{}
}

func (s *slow) Put(ctx context.Context, key blobstore.Key,
	from io.Reader) (blobstore.Written, error) {
	s.begun <- struct{}{}
	<-s.goOn
	return s.Store.Put(ctx, key, from)
}

// An export that is deleted or loses its share while it is written leaves no file.
func TestKeptExportUnderWay(t *testing.T) {
	for name, strike := range map[string]func(k *keeper, id ids.ID){
		"deleted": func(k *keeper, id ids.ID) {
			k.Client.Must(t, client.DropExport{ID: id, Customer: "bob"})
		},
		"share ended": func(k *keeper, _ ids.ID) {
			k.Client.Must(t, client.RevokeShare{Customer: "alice", Group: k.group,
				Email: "bob@x.test"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			blobs, err := blobstore.OpenDirectory(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = blobs.Close() })
			s := &slow{Store: blobs, begun: make(chan struct{}), goOn: make(chan struct{})}
			k := &keeper{blobs: blobs, rig: startOn(t, apitest.NewStore(t),
				func(config *apiserver.Config) { config.Blobs = s })}
			k.share(t)
			for n := range 400 { // more than is read ahead
				k.rig.run(t, k.shop, fmt.Sprintf(`{"n":%d,"text":%q}`, n,
					strings.Repeat("x", 20_000)))
			}
			id := k.ask(t, apitest.Other, "groupId="+k.group.String())
			done := make(chan struct{})
			go func() { defer close(done); k.step(t, id, 0) }()
			<-s.begun
			strike(k, id)
			close(s.goOn)
			<-done
			if n := k.files(t); n != 0 {
				t.Errorf("%d files are left", n)
			}
			if e := k.Client.View().Export(id); e != nil && e.State != client.ExportFailed {
				t.Errorf("%+v", e)
			}
		})
	}
}

// Requests are checked first and bounded, and a repeated call creates only one export.
func TestKeptExportsAreBounded(t *testing.T) {
	k := startKeeper(t)
	group := "groupId=" + k.group.String()
	post := func(query string, status int, code string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.User, Do: "POST " + keptPath + "?" + query,
			Status: status, Code: code}
	}
	reader := post(group, 403, "scope_rejected")
	reader.As = apitest.Reader
	foreign := post(group, 400, "not_found")
	foreign.As = apitest.Other
	once := post(group, 202, "")
	once.Header = map[string]string{"Idempotency-Key": "k"}
	k.Run(t, reader, foreign, post("", 400, "invalid_request"),
		post(group+"&filters=x", 400, "invalid_filter"), post(group+"&format=ods", 400,
			"invalid_request"),
		post("jobId="+unknown, 400, "job_not_found"), once, once)
	if n := len(k.Client.View().Exports("alice")); n != 1 {
		t.Fatalf("%d exports are asked for by one call", n)
	}
	for range client.MaxExports - 1 {
		k.ask(t, apitest.User, group)
	}
	k.Run(t, post(group, 402, "limit_reached"))
	k.Clock.Advance(7*24*time.Hour - time.Second)
	k.Client.Tick(t)
	k.Run(t, post(group, 402, "limit_reached"))
	k.Clock.Advance(time.Second)
	k.Client.Tick(t)
	if n := len(k.Client.View().Exports("alice")); n != 0 {
		t.Errorf("%d exports are left", n)
	}
	k.Client.Short(t, "row store")
	k.Run(t, post(group, 503, "out_of_space"))
	k.Client.Short(t, "")
	id := k.ask(t, apitest.User, group)
	k.Client.Short(t, "row store")
	if end, _ := k.step(t, id, 0); end != work.Rested {
		t.Errorf("without room it %v", end)
	}
	none := start(t)
	none.Run(t, apitest.Scenario{Name: "nowhere to keep", As: apitest.User, Status: 404,
		Code: "exports_not_kept", Do: "POST " + keptPath + "?groupId=" + none.group.String()})
}
