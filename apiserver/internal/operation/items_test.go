package operation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"shoal.dev/shoal/pkg/fault"
)

type itemOfList struct {
	URL  string `json:"url" required:"true" max:"20" code:"INVALID_URL"`
	Text string `json:"text"`
}

type listBody struct {
	Name  string       `json:"name" required:"true"`
	Items []itemOfList `json:"items" required:"true" alone:"json" max:"3"`
}

type listRequest struct {
	Body   listBody `body:"json" limit:"1000"`
	Stream *Stream  `stream:"text/uri-list" items:"items"`
}

// takeApart decodes a JSON body whose items come one by one.
func takeApart(t *testing.T, from io.Reader) (in listRequest, lines string, kept []byte,
	err error) {
	t.Helper()
	r := compileRequest("test", reflect.TypeFor[listRequest]())
	var file bytes.Buffer
	incoming := &incoming{contentType: "application/json", hasBody: true,
		stream: &Stream{ContentType: "application/json"},
		receive: func(_ int64, refine Refine) (spooled, error) {
			err := refine(&file, from)
			return bytes.NewReader(file.Bytes()), err
		}}
	value, kept, err := r.decode(incoming, fault.InvalidRequest)
	if err != nil {
		return in, "", nil, err
	}
	in = *value.Interface().(*listRequest)
	whole, err := io.ReadAll(in.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return in, string(whole), kept, nil
}

// Items are checked like those of a whole body, and come as lines. The rest decodes as usual.
func TestItemsOfABody(t *testing.T) {
	for body, want := range map[string]string{
		`{"name":"n","items":[]}`:        "",
		mark + `{"name":"n","items":[]}`: "",
		` {"items" : [ {"url":"a","text":"<&>"} , {"url":"b"} ] , "name":"n" } `: `{"url":"a","text":"<&>"}
{"url":"b","text":""}
`,
		"{\"name\":\"n\",\"items\":[{\"text\":null,\"url\":\"\\u0061\"}]}": `{"url":"a","text":""}
`,
	} {
		for name, from := range map[string]io.Reader{"at once": strings.NewReader(body),
			"by bytes": iotest.OneByteReader(strings.NewReader(body))} {
			in, lines, _, err := takeApart(t, from)
			if err != nil || in.Body.Name != "n" || lines != want || len(in.Body.Items) != 0 {
				t.Errorf("%s, %s: %v, %+v, %q", body, name, err, in.Body, lines)
			}
		}
	}
}

func TestItemsThatAreRefused(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for body, want := range map[string]string{
		``:                                   "invalid_body",
		`[]`:                                 "invalid_body",
		`{`:                                  "invalid_body",
		`{"name":"n","items":[`:              "invalid_body items",
		`{"name":"n","items":[{"url"`:        "invalid_body items[0]",
		`{"name":"n","items":[{"url":"a"},]`: "invalid_body items[1]",
		`{"name":n}`:                         "invalid_body name",
		mark + mark + `{}`:                   "invalid_body",
		`{"name":"n","items":[]}{}`:          "invalid_body",
		`{"name":"n","items":[],}`:           "invalid_body",
		`{"name":"n","items":[]`:             "invalid_body",
		mark + `{"name":"n","items":[7]}`:    "invalid_request items[0]",
		`{"name":"n","name":"m"}`:            "invalid_body",
		`{"name":"n","items":[],"items":[]}`: "invalid_body",
		`{"items":[]}`:                       "invalid_request name",
		`{"name":"n"}`:                       "invalid_request items",
		`{"name":"n","items":null}`:          "invalid_request items",
		`{"name":"n","items":{}}`:            "invalid_request items",
		`{"name":"n","items":7}`:             "invalid_request items",
		`{"name":"n","items":[],"x":1}`:      "unknown_field x",
		`{"name":"n","items":[7]}`:           "invalid_request items[0]",
		`{"name":"n","items":[null]}`:        "invalid_request items[0]",
		`{"name":"n","items":[{}]}`:          "INVALID_URL items[0].url",
		`{"name":"n","items":[{"url":"a"},{"url":"a","x":1}]}`:                     "unknown_field items[1].x",
		`{"name":"n","items":[{"url":"a","url":"b"}]}`:                             "invalid_body items[0]",
		`{"name":"n","items":[{"url":"` + strings.Repeat("a", 21) + `"}]}`:         "INVALID_URL items[0].url",
		`{"name":"n","items":[{"url":"a","text":` + deep + `}]}`:                   "invalid_body items[0]",
		"{\"name\":\"n\",\"items\":[{\"url\":\"\xff\"}]}":                          "invalid_body items[0]",
		`{"name":"n","items":[{"url":"a"},{"url":"a"},{"url":"a"},{"url":"a"}]}`:   "invalid_request items",
		`{"name":"n","items":[{"text":"` + strings.Repeat("a", 2*maxItem) + `"}]}`: "payload_too_large items[0]",
		`{"name":"` + strings.Repeat("a", 2*maxItem) + `"}`:                        "payload_too_large name",
		`{"items":[{"url":"a"},{"text":"` + strings.Repeat("a", 2*maxItem):         "payload_too_large items[1]",
		`{"items":[{"url":"a"},` + strings.Repeat(" ", 2*maxItem) + `]}`:           "payload_too_large items[1]",
		`{"` + strings.Repeat("a", 2*maxItem) + `":1}`:                             "payload_too_large items",
		strings.Repeat(" ", 2*maxItem) + `{}`:                                      "payload_too_large items",
	} {
		_, _, _, err := takeApart(t, strings.NewReader(body))
		var coded *fault.Error
		if !errors.As(err, &coded) {
			t.Errorf("%.80s: %v", body, err)
			continue
		}
		if got := strings.TrimSpace(fmt.Sprint(coded.Code, " ", coded.Field)); got != want {
			t.Errorf("%.80s: %s (%s), want %s", body, got, coded.Detail, want)
		}
	}
}

// The hash of a request covers its items. A failed write is not reported as the caller's fault.
func TestItemsAreToldApart(t *testing.T) {
	seen := map[string]string{}
	for _, body := range []string{`{"name":"n","items":[]}`, `{"name":"n","items":[{"url":"a"}]}`,
		`{"name":"n","items":[{"url":"b"}]}`, `{"name":"m","items":[{"url":"b"}]}`} {
		_, _, kept, err := takeApart(t, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[string(kept)]; other != "" {
			t.Errorf("%s is taken for %s", body, other)
		}
		seen[string(kept)] = body
	}
	r := compileRequest("test", reflect.TypeFor[listRequest]())
	full := errors.New("the disk is full")
	_, _, err := r.decode(&incoming{contentType: "application/json", hasBody: true,
		stream: &Stream{}, receive: func(_ int64, refine Refine) (spooled, error) {
			return nil, refine(failing{full}, strings.NewReader(`{"name":"n","items":[{"url":"a"}]}`))
		}}, fault.InvalidRequest)
	if !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

type manyRequest struct {
	Body struct {
		Items []itemOfList `json:"items" required:"true" alone:"json" max:"1000000"`
	} `body:"json"`
	Stream *Stream `stream:"text/uri-list" items:"items"`
}

// The memory that a body takes does not grow with its length.
func TestItemsTakeNoMemory(t *testing.T) {
	r := compileRequest("test", reflect.TypeFor[manyRequest]())
	peak := func(items int) uint64 {
		const item = `{"url":"a","text":"0123456789012345678901234567890123456789"},`
		body := io.MultiReader(strings.NewReader(`{"items":[`),
			io.LimitReader(&repeated{text: item}, int64(items*len(item)-1)),
			strings.NewReader(`]}`))
		var most uint64
		_, _, err := r.decode(&incoming{contentType: "application/json", hasBody: true,
			stream: &Stream{}, receive: func(_ int64, refine Refine) (spooled, error) {
				n := 0
				return strings.NewReader(""), refine(counting(func() {
					if n++; n%5_000 == 0 {
						runtime.GC()
						var stats runtime.MemStats
						runtime.ReadMemStats(&stats)
						most = max(most, stats.HeapAlloc)
					}
				}), body)
			}}, fault.InvalidRequest)
		if err != nil {
			t.Fatal(err)
		}
		return most
	}
	few, many := peak(5_000), peak(100_000)
	if many > few+1<<20 {
		t.Errorf("100,000 items take %d bytes at a time, 5,000 take %d", many, few)
	}
}

type counting func()

func (c counting) Write(p []byte) (int, error) { c(); return len(p), nil }

// repeated is an endless text.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
