package data_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

const hostile = "<script>alert(1)</script>"

// keepBody stores a delivered page of a run with its body, and returns its row's id.
func (k *keeper) keepBody(t *testing.T, seq uint32, kept bool) (row string, key blobstore.Key) {
	t.Helper()
	codec := bodies.NewCodec()
	pack := bodies.Pack{Group: k.group, Scraper: k.shop, Job: k.jobs[0], ID: k.IDs.New(), Days: 2}
	hash := sha256.Sum256([]byte(hostile))
	page := &model.Page{Job: k.jobs[0], Unit: model.Unit{Seq: seq}, Fetch: k.IDs.New(),
		Outcome: model.Delivered, URL: "https://shop.test/", At: k.Clock.Now().UnixMicro(),
		BodyHash: hash[:], Last: true, Rows: [][]byte{[]byte(`{"n":1}`)}}
	entry, err := bodies.Entry{Fetch: page.Fetch, Pages: []bodies.Page{
		codec.Pack("", "https://shop.test/", "text/html", []byte(hostile))}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	key = pack.Key("alice")
	if kept {
		page.Kept = &model.KeptBody{Pack: pack.ID, Length: uint32(len(entry)), Days: pack.Days}
		if _, err := k.blobs.Put(t.Context(), key, bytes.NewReader(entry)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = k.store.PutPages(t.Context(), []rowstore.PageWrite{{Job: rowstore.Job{ID: page.Job,
		Customer: "alice", Group: k.group, Scraper: k.shop, Started: 1}, Page: page}})
	if err != nil {
		t.Fatal(err)
	}
	return model.RowID{Job: page.Job, Unit: page.Unit}.String(), key
}

// A receipt tells where the body is. The owner of the row gets the body as a file that no browser
// runs.
func TestBody(t *testing.T) {
	k := startKeeper(t)
	row, key := k.keepBody(t, 100, true)
	without, _ := k.keepBody(t, 101, false)
	body := func(name, as, row string, status int, code string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: as, Do: receiptOf(row) + "/body", Status: status,
			Code: code}
	}
	a := k.Call(t, body("own", apitest.Reader, row, 200, ""))
	hash := sha256.Sum256(a.Body)
	if a.Status != 200 || string(a.Body) != hostile {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for header, want := range map[string]string{
		"Content-Type":            "application/octet-stream",
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox",
		"Content-Disposition":     `attachment; filename="body-` + k.jobs[0].String() + `-100-0.html"`,
		"Cache-Control":           "no-store",
	} {
		if got := a.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	until := k.Clock.Now().Add(48 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	receipt := func(name, as, row string, body any) apitest.Scenario {
		return apitest.Scenario{Name: name, As: as, Do: receiptOf(row), Status: 200,
			Has: map[string]any{"body": body, "bodySha256": hex.EncodeToString(hash[:])}}
	}
	k.Run(t,
		receipt("receipt", apitest.User, row, map[string]any{"keptUntil": until,
			"path": "/api/scraper/data/" + row + "/receipt/body"}),
		receipt("receipt without", apitest.User, without, nil),
		body("never kept", apitest.User, without, 404, "body_not_kept"),
		body("foreign", apitest.Other, row, 400, "not_found"),
		body("of no row", apitest.User, model.RowID{Job: ids.ID{1}}.String(), 400, "not_found"),
		body("malformed", apitest.User, unknown, 400, "invalid_id"))
	k.share(t)
	k.Run(t, receipt("shared receipt", apitest.Other, row, nil),
		body("shared", apitest.Other, row, 403, "body_not_shared"))
	removed, gone := k.keepBody(t, 102, true)
	if err := k.blobs.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	k.Run(t, body("made room", apitest.User, removed, 410, "body_expired"))
	k.Clock.Advance(48 * time.Hour)
	k.Run(t, receipt("late receipt", apitest.User, row, nil),
		body("expired", apitest.User, row, 410, "body_expired"))
	if _, err := k.blobs.Stat(t.Context(), key); err != nil {
		t.Errorf("the pack is there until it is swept: %v", err)
	}
}
