package record

import (
	"encoding/hex"
	"flag"
	"os"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestEncoding: records once written stay readable, and their encoding does not change.
func TestEncoding(t *testing.T) {
	page := &model.Page{
		Fetch: ids.ID{1, 2, 3}, Code: "timeout", Status: 503, URL: "https://a.test/",
		Final: "https://b.test/",
		Tries: []model.Try{{Tier: model.Super, Code: "timeout", Status: 503, Millis: 5}}, Bytes: 6,
		Millis: 7, At: 8,
		Spent: true, Next: &model.Continuation{Page: 1, URL: "https://c.test/",
			Seen: []uint64{1 << 63}, KnownRows: []uint64{9}},
		Detail: "why", BodyHash: []byte{1, 2, 255},
		Kept: &model.KeptBody{Pack: ids.ID{4}, Offset: 5, Length: 6, Days: 7,
			From: &model.KeptFrom{Job: ids.ID{8}, Group: ids.ID{9}, Fetch: ids.ID{10}}},
		Sums: []byte{3},
	}
	codec, err := NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := codec.Encode(page)
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/content.golden"
	if *update {
		if err := os.WriteFile(path, []byte(hex.Dump(encoded)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), hex.Dump(encoded)); diff != "" {
		t.Error(diff)
	}
	var content Content
	if err := cbor.Unmarshal(encoded, &content); err != nil || content.Final != page.Final ||
		content.Bytes != 6 || !content.Spent {
		t.Errorf("content %+v, %v", content, err)
	}
	var got rowstore.Record
	next, err := Decode(encoded, &got)
	if err != nil {
		t.Fatal(err)
	}
	want := rowstore.Record{Fetch: page.Fetch, Code: "timeout", Detail: "why", Status: 503,
		URL: page.URL, At: 8, Final: page.Final, Tries: page.Tries, Bytes: 6, Millis: 7,
		BodyHash: page.BodyHash, Kept: page.Kept, Sums: page.Sums}
	if diff := cmp.Diff(want, got) + cmp.Diff(page.Next, next); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0xa1, 1, 0x4c})
	f.Fuzz(func(t *testing.T, data []byte) {
		var r rowstore.Record
		if _, err := Decode(data, &r); err != nil {
			return // it must not panic
		}
	})
}
