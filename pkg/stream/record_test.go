package stream

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

var update = flag.Bool("update", false, "write the golden records anew")

func exampleContinuation() *model.Continuation {
	return &model.Continuation{Page: 2, URL: "https://shop-17.example/list?page=2",
		Seen:      []uint64{1, 1 << 63},
		KnownRows: []uint64{7}}
}

func exampleTask() model.Task {
	return model.Task{Job: ids.ID{1}, Seq: 4711, Customer: "customer-0001", Scraper: ids.ID{2},
		Revision: 3,
		URL:      "https://shop-17.example/products/000004711.html", Tiers: 1, Budget: 10,
		Attempt: 1,
		Number:  99_123}
}

func examplePage() model.Page {
	return model.Page{Job: ids.ID{1}, Unit: model.Unit{Seq: 4711}, Fetch: ids.ID{3},
		Outcome: model.Delivered, Status: 200,
		URL: "https://shop-17.example/products/000004711.html", PriceRow: "tier:plain", Quantity: 1,
		Tries: []model.Try{{Status: 200, Millis: 31}}, Bytes: 20_480, Millis: 35,
		At: 1_800_000_000_000_000, Last: true,
		Rows: [][]byte{[]byte(`{"title":"Lamp 4711","price":"12.90","currency":"EUR","stock":true,"image":"/i/4711.jpg"}`)}}
}

func exampleReceipt() model.Receipt {
	return model.Receipt{Job: ids.ID{1}, Unit: model.Unit{Seq: 4711}, Outcome: model.Delivered,
		PriceRow: "tier:plain",
		Quantity: 1, Items: 1, Last: true}
}

// goldens returns, for each kind: a plain record, one with every original field set, and one for
// each later field.
func goldens() map[string][]byte {
	chainTask := exampleTask()
	chainTask.From = exampleContinuation()
	chainReceipt := exampleReceipt()
	chainReceipt.Unit.Page, chainReceipt.Last, chainReceipt.Next = 1, false, exampleContinuation()
	fullPage := examplePage()
	fullPage.Unit.Page, fullPage.Code, fullPage.Final, fullPage.URLHash = 1, "http_error",
		"https://shop-17.example/", 1<<63
	fullPage.Tries = []model.Try{{Code: "timeout", Millis: 30_000},
		{Tier: model.Render, Status: 200, Millis: 31}}
	fullPage.Spent, fullPage.Next = true, exampleContinuation()
	fullPage.Rows = append(fullPage.Rows, []byte(`{}`))
	rendered := exampleContinuation()
	rendered.Rendered = true
	renderedTask, renderedPage, renderedReceipt := chainTask, fullPage, chainReceipt
	renderedTask.From, renderedPage.Next, renderedReceipt.Next = rendered, rendered, rendered
	trace := []byte("0123456789abcdef01234567")
	tracedTask, tracedPage, tracedReceipt := exampleTask(), examplePage(), exampleReceipt()
	tracedTask.Trace, tracedPage.Trace, tracedReceipt.Trace = trace, trace, trace
	limitedTask := exampleTask()
	limitedTask.Limited = true
	return map[string][]byte{
		"task-limited": EncodeTask(limitedTask),
		"marker-numbered": EncodeMarker(model.Marker{Leader: 3, Shard: 17, Number: 42,
			Newest: 99_123}),

		"task-rendered":    EncodeTask(renderedTask),
		"page-rendered":    EncodePage(renderedPage),
		"receipt-rendered": EncodeReceipt(renderedReceipt),

		"task-traced":    EncodeTask(tracedTask),
		"page-traced":    EncodePage(tracedPage),
		"receipt-traced": EncodeReceipt(tracedReceipt),

		"task":         EncodeTask(exampleTask()),
		"task-full":    EncodeTask(chainTask),
		"page":         EncodePage(examplePage()),
		"page-full":    EncodePage(fullPage),
		"receipt":      EncodeReceipt(exampleReceipt()),
		"receipt-full": EncodeReceipt(chainReceipt),
		"marker":       EncodeMarker(model.Marker{Leader: 3, Shard: 17, Number: 42}),
		"marker-full": EncodeMarker(model.Marker{Leader: 3, Shard: 17, Number: 42,
			Open: []model.OpenTasks{{Job: ids.ID{1}, Seqs: []uint32{0, 4711}},
				{Job: ids.ID{2}, Seqs: []uint32{1 << 31}}}}),
	}
}

// decodeAny decodes a record with its topic's decoder and encodes it again.
func decodeAny(name string, value []byte) ([]byte, error) {
	switch {
	case strings.HasPrefix(name, "task"):
		return again(EncodeTask)(DecodeTasks(value))
	case strings.HasPrefix(name, "page"):
		return again(EncodePage)(DecodePages(value))
	default:
		return again(EncodeReceipt)(DecodeReceipts(value))
	}
}

func again[B any](encode func(B) []byte) func(*B, *model.Marker, error) ([]byte, error) {
	return func(body *B, marker *model.Marker, err error) ([]byte, error) {
		switch {
		case err != nil && (body != nil || marker != nil):
			return nil, errors.New("an error and a record")
		case err != nil:
			return nil, err
		case (body == nil) == (marker == nil):
			return nil, errors.New("want exactly one of body and marker")
		case marker != nil:
			return EncodeMarker(*marker), nil
		}
		return encode(*body), nil
	}
}

func TestGolden(t *testing.T) {
	for name, value := range goldens() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".hex")
			if *update {
				if err := os.WriteFile(path, []byte(hex.EncodeToString(value)+"\n"),
					0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			golden, err := hex.DecodeString(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(value, golden) {
				t.Errorf("encoded\n%x, golden\n%x", value, golden)
			}
			back, err := decodeAny(name, golden)
			if err != nil || !bytes.Equal(back, golden) {
				t.Errorf("decoded and encoded again: %v\n%x, golden\n%x", err, back, golden)
			}
		})
	}
}

func TestRoundTrip(t *testing.T) {
	t.Run("task", func(t *testing.T) { roundTrip(t, EncodeTask, DecodeTasks) })
	t.Run("page", func(t *testing.T) { roundTrip(t, EncodePage, DecodePages) })
	t.Run("receipt", func(t *testing.T) { roundTrip(t, EncodeReceipt, DecodeReceipts) })
	t.Run("marker", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			want := rapid.Make[model.Marker]().Draw(t, "marker")
			task, got, err := DecodeTasks(EncodeMarker(want))
			if err != nil || task != nil {
				t.Fatalf("task %v, error %v", task, err)
			}
			if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
		})
	})
}

func roundTrip[B any](t *testing.T, encode func(B) []byte,
	decode func([]byte) (*B, *model.Marker, error)) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Make[B]().Draw(t, "record")
		if page, is := any(&want).(*model.Page); is {
			page.Sums = nil // ingest adds them: the log carries none
		}
		value := encode(want)
		got, marker, err := decode(value)
		if err != nil || marker != nil {
			t.Fatalf("marker %v, error %v", marker, err)
		}
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		// Decoded values must survive when the log reuses its bytes.
		clear(value)
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("shares memory with the record: %s", diff)
		}
	})
}

// TestTextIsMended: every writer mends text that is not UTF-8, and so do readers of older records.
func TestTextIsMended(t *testing.T) {
	bad, good := "https://shop.example/\xff\xfe", "https://shop.example/\ufffd"
	from := &model.Continuation{Page: 1, URL: bad}
	if task, _, err := DecodeTasks(EncodeTask(model.Task{URL: bad, From: from})); err != nil ||
		task.URL != good || task.From.URL != good {
		t.Errorf("task %+v, error %v", task, err)
	}
	page, _, err := DecodePages(EncodePage(model.Page{URL: bad, Final: bad, Code: bad,
		PriceRow: bad, Next: from,
		Tries: []model.Try{{Code: bad}}, Rows: [][]byte{[]byte(bad)}}))
	want := &model.Page{URL: good, Final: good, Code: good, PriceRow: good,
		Next:  &model.Continuation{Page: 1, URL: good},
		Tries: []model.Try{{Code: good}}, Rows: [][]byte{[]byte(bad)}}
	if diff := cmp.Diff(want, page); diff != "" || err != nil {
		t.Errorf("page %s, error %v", diff, err)
	}
	receipt, _, err := DecodeReceipts(EncodeReceipt(model.Receipt{PriceRow: bad, Next: from}))
	if err != nil || receipt.PriceRow != good || receipt.Next.URL != good {
		t.Errorf("receipt %+v, error %v", receipt, err)
	}
	old := append([]byte{recordVersion, byte(kindTask), 0xa1, 0x06, 0x78, byte(len(bad))}, bad...)
	if task, _, err := DecodeTasks(old); err != nil || task.URL != good {
		t.Errorf("task of an older writer %+v, error %v", task, err)
	}
}

// TestAnyTextIsDecoded: pages, sites and nodes may put any bytes into text. Encoded records can be
// decoded, and always to the same.
func TestAnyTextIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "text"))
		task, page, receipt := exampleTask(), examplePage(), exampleReceipt()
		from := &model.Continuation{Page: 1, URL: text}
		task.Customer, task.URL, task.From = text, text, from
		page.URL, page.Final, page.Code, page.PriceRow, page.Next = text, text, text, text, from
		page.Rows, page.Tries = [][]byte{[]byte(text)}, []model.Try{{Code: text}}
		receipt.PriceRow, receipt.Next = text, from
		for name, value := range map[string][]byte{"task": EncodeTask(task),
			"page": EncodePage(page), "receipt": EncodeReceipt(receipt)} {
			if again, err := decodeAny(name, value); err != nil || !bytes.Equal(again, value) {
				t.Fatalf("%s with %q: %v", name, text, err)
			}
		}
	})
}

func TestUnknownKeysAreIgnored(t *testing.T) {
	body, err := cbor.Marshal(map[any]any{2: 4711, 6: "https://a.example/",
		999: []any{map[string]int{"x": 1}}, "name": nil})
	if err != nil {
		t.Fatal(err)
	}
	task, _, err := DecodeTasks(append([]byte{recordVersion, byte(kindTask)}, body...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&model.Task{Seq: 4711, URL: "https://a.example/"}, task); diff != "" {
		t.Error(diff)
	}
}

func TestUndecodable(t *testing.T) {
	task := EncodeTask(exampleTask())
	deep := append([]byte{recordVersion, byte(kindTask), 0xa1, 0x19, 0x03, 0xe7},
		bytes.Repeat([]byte{0x81}, 100)...)
	tests := map[string][]byte{
		"nil":                   nil,
		"version only":          {recordVersion},
		"no body":               {recordVersion, byte(kindTask)},
		"newer version":         append([]byte{recordVersion + 1}, task[1:]...),
		"unknown kind":          append([]byte{recordVersion, 99}, task[2:]...),
		"kind of another topic": EncodePage(examplePage()),
		"cut off":               task[:len(task)-1],
		"trailing byte":         append(bytes.Clone(task), 0),
		"null body":             {recordVersion, byte(kindTask), 0xf6},
		"array body":            {recordVersion, byte(kindTask), 0x80},
		"field of another type": {recordVersion, byte(kindTask), 0xa1, 0x02, 0x61, 'x'},
		"number out of range":   {recordVersion, byte(kindTask), 0xa1, 0x09, 0x19, 0x01, 0x00},
		"repeated key":          {recordVersion, byte(kindTask), 0xa2, 0x02, 0x01, 0x02, 0x02},
		"indefinite length":     {recordVersion, byte(kindTask), 0xbf, 0xff},
		"tag":                   {recordVersion, byte(kindTask), 0xa1, 0x02, 0xc1, 0x01},
		"too deep":              append(deep, 0x00),
		"array longer than data": {recordVersion, byte(kindMarker), 0xa1, 0x04, 0x9a, 0x7f, 0xff,
			0xff, 0xff},
		"too long": append(bytes.Clone(task), make([]byte, MaxRecordBytes)...),
	}
	for name, value := range tests {
		t.Run(name, func(t *testing.T) {
			task, marker, err := DecodeTasks(value)
			if !errors.Is(err, ErrUndecodable) || task != nil || marker != nil {
				t.Errorf("task %v, marker %v, error %v", task, marker, err)
			}
		})
	}
}

// fuzz checks that a decoder never panics, has only the one error, and accepts only stable records.
func fuzz(f *testing.F, name string) {
	for _, value := range goldens() {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		first, err := decodeAny(name, value)
		if err != nil {
			if !errors.Is(err, ErrUndecodable) {
				t.Fatal(err)
			}
			return
		}
		second, err := decodeAny(name, first)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("encoded again: %v\n%x\n%x", err, first, second)
		}
	})
}

func FuzzDecodeTasks(f *testing.F)    { fuzz(f, "task") }
func FuzzDecodePages(f *testing.F)    { fuzz(f, "page") }
func FuzzDecodeReceipts(f *testing.F) { fuzz(f, "receipt") }

func BenchmarkEncode(b *testing.B) {
	task, page, receipt := exampleTask(), examplePage(), exampleReceipt()
	b.Run("task", func(b *testing.B) { benchmarkEncode(b, task, EncodeTask) })
	b.Run("page", func(b *testing.B) { benchmarkEncode(b, page, EncodePage) })
	b.Run("receipt", func(b *testing.B) { benchmarkEncode(b, receipt, EncodeReceipt) })
}

func benchmarkEncode[B any](b *testing.B, record B, encode func(B) []byte) {
	b.ReportAllocs()
	for b.Loop() {
		encode(record)
	}
}

func BenchmarkDecode(b *testing.B) {
	task, page, receipt := EncodeTask(exampleTask()), EncodePage(examplePage()),
		EncodeReceipt(exampleReceipt())
	b.Run("task", func(b *testing.B) { benchmarkDecode(b, task, DecodeTasks) })
	b.Run("page", func(b *testing.B) { benchmarkDecode(b, page, DecodePages) })
	b.Run("receipt", func(b *testing.B) { benchmarkDecode(b, receipt, DecodeReceipts) })
}

func benchmarkDecode[B any](b *testing.B, value []byte,
	decode func([]byte) (*B, *model.Marker, error)) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decode(value); err != nil {
			b.Fatal(err)
		}
	}
}
