package urllist_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/cmd/shoal/internal/urllist"
)

// look opens a list from a file and from standard input, and requires equal results.
func look(t *testing.T, text string, skip bool) (body string, list *urllist.List, bad []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, name := range []string{path, urllist.Standard} {
		bad = nil
		var err error
		list, err = urllist.Open(name, strings.NewReader(text), skip, func(b urllist.Bad) {
			bad = append(bad, fmt.Sprintf("%d %s", b.Line, b.Reason))
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // it may be sent twice
			sent, err := io.ReadAll(list.Body())
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, string(sent))
		}
		if err := list.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range bodies {
		if body != bodies[0] || int64(len(body)) != list.Length {
			t.Errorf("bodies %q", bodies)
		}
	}
	return bodies[0], list, bad
}

func TestLinesAreToldApart(t *testing.T) {
	for line, reason := range map[string]string{
		"https://a.example/1":          "",
		"HTTP://a.example":             "",
		"https://a.example/a b":        "",
		"https://müller.example/ü?q=1": "",
		"# a comment":                  "",
		"":                             "",
		"a.example/1":                  "has no scheme: is it https://a.example/1?",
		"//a.example/1":                "has no scheme: is it https://a.example/1?",
		"a.example:8080/x":             "has no scheme: is it https://a.example:8080/x?",
		"localhost:3000":               "has no scheme: is it https://localhost:3000?",
		"url":                          "is a header, not an address: take it off",
		"Product page,Price":           "is a header, not an address: take it off",
		`"https://a.example/1"`:        "stands in quotes: take them off",
		"“https://a.example/1”":        "stands in quotes: take them off",
		"https://a.example/1\tfoo":     "has several columns: keep that of the addresses alone",
		"7,https://a.example/1":        "has several columns: keep that of the addresses alone",
		"https://a.example;https://b":  "has several columns: keep that of the addresses alone",
		"https://a.example https://b":  "has several columns: keep that of the addresses alone",
		"https://a.example/1,Oak lamp": "has several columns: keep that of the addresses alone",
		"https://a.example/1;Oak lamp": "has several columns: keep that of the addresses alone",
		"https://a.example/1|Oak lamp": "has several columns: keep that of the addresses alone",
		"Name, Shop address":           "is a header, not an address: take it off",
		"https://a.example/1,2;3|4":    "",
		"https://a.example/1\rhttps://b": "is several lines with the ends of old Macs: save the " +
			"list with those of Unix",
		"https://a.example/tls,https": "",
		"https://a.example/;http-2":   "",
		"ftp://a.example/1":           "begins with ftp: only http:// and https:// can be read",
		"mailto:a@a.example":          "begins with mailto: only http:// and https:// can be read",
		"https://u:p@a.example/":      "holds a user name or password",
		"https://":                    "cannot be read: The address cannot be read",
		"see a.example for more":      "is no address",
		"https://a.example/\xff":      "is not UTF-8: save the list as UTF-8",
	} {
		_, _, bad := look(t, line+"\n", false)
		want := []string(nil)
		if reason != "" {
			want = []string{"1 " + reason}
		}
		if diff := cmp.Diff(want, bad); diff != "" {
			t.Errorf("%q (- wanted):\n%s", line, diff)
		}
	}
	for line, reason := range map[string]string{
		`{"url":"https://a.example/1"}`:   "",
		`{"url":"https://a.b/,http://c"}`: "",
		`{"url": "a.example/1"}`:          "has no scheme: is it https://a.example/1?",
		`{"link":"https://a.example/"}`:   `has a member "link" beside url`,
		`{"url":""}`:                      `is no JSON object like {"url": "https://…"}`,
		`{"url":"https://a.example/"} 1`:  `is no JSON object like {"url": "https://…"}`,
		`https://a.example/`:              `is no JSON object like {"url": "https://…"}`,
	} {
		_, list, bad := look(t, `{"url":"https://first.example/"}`+"\n"+line+"\n", false)
		want := []string(nil)
		if reason != "" {
			want = []string{"2 " + reason}
		}
		if diff := cmp.Diff(want, bad); diff != "" || list.ContentType != "application/x-ndjson" {
			t.Errorf("%q (- wanted):\n%s", line, diff)
		}
	}
}

func TestBadLinesAreLeftOut(t *testing.T) {
	text := "\xef\xbb\xbfurl\n\nhttps://a.example/1\r\na.example/2\n" +
		strings.Repeat("x", 100_000) + "\nhttps://a.example/3"
	body, list, bad := look(t, text, true)
	if body != "\nhttps://a.example/1\r\nhttps://a.example/3" || list.First != "https://a.example/1" {
		t.Errorf("%q, first %s", body, list.First)
	}
	want := []string{"1 is a header, not an address: take it off",
		"4 has no scheme: is it https://a.example/2?", "5 is longer than 65536 bytes"}
	if diff := cmp.Diff(want, bad); diff != "" || list.Good != 2 || list.Bad != 3 {
		t.Errorf("%d good, %d bad (- wanted):\n%s", list.Good, list.Bad, diff)
	}
	// An address that is bad for its own reason tells no table's sign.
	_, _, bad = look(t, "ftp://a.example/1,2\nhttps://a.example/1,2\n", true)
	if len(bad) != 1 {
		t.Errorf("bad lines: %q", bad)
	}
	if body, _, _ := look(t, "https://a.example/1\n", false); body != "https://a.example/1\n" {
		t.Errorf("%q", body)
	}
}

// A table's first line shows what is between its columns. No line with that is an address then,
// though each alone may be one.
func TestTablesAreToldByTheirFirstLine(t *testing.T) {
	const columns = "has several columns: keep that of the addresses alone"
	for _, test := range []struct {
		text string
		good string
		bad  []string
	}{
		{"url,name\nhttps://a.example/1,Lamp\nhttps://a.example/2\n", "https://a.example/2\n",
			[]string{"1 is a header, not an address: take it off", "2 " + columns}},
		{"# shop\nurl;price\nhttps://a.example/1;12.50\nhttps://a.example/2,3\n",
			"# shop\nhttps://a.example/2,3\n",
			[]string{"2 is a header, not an address: take it off", "3 " + columns}},
		{"url|name,price\nhttps://a.example/1|Lamp\n", "",
			[]string{"1 is a header, not an address: take it off", "2 " + columns}},
		{"https://a.example/1,Oak lamp\nhttps://a.example/2,Lamp\n", "",
			[]string{"1 " + columns, "2 " + columns}},
		{"https://a.example/1,2\nname,url\nhttps://a.example/3,4\n",
			"https://a.example/1,2\nhttps://a.example/3,4\n", []string{"2 is no address"}},
	} {
		body, _, bad := look(t, test.text, true)
		if diff := cmp.Diff(test.bad, bad); diff != "" || body != test.good {
			t.Errorf("%q: sent %q (- wanted):\n%s", test.text, body, diff)
		}
	}
}

func TestUTF16IsTold(t *testing.T) {
	for _, text := range []string{"\xff\xfeh\x00t\x00t\x00p\x00", "\xfe\xff\x00h\x00t",
		"h\x00t\x00t\x00p\x00:\x00/\x00/\x00", "\x00h\x00t\x00t\x00p\x00:\x00/"} {
		_, err := urllist.Open(urllist.Standard, strings.NewReader(text), true, nil)
		if !errors.Is(err, urllist.ErrUTF16) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add("https://a.example/1\nurl\n{")
	f.Add("{\"url\":\"https://a.example/1\"}\n{\"url\":1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := urllist.Open(urllist.Standard, strings.NewReader(text), true,
			func(urllist.Bad) {})
		if err != nil {
			return
		}
		clean, err := io.ReadAll(list.Body())
		if err != nil {
			t.Fatal(err)
		}
		good := list.Good
		if err := list.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := urllist.Open(urllist.Standard, strings.NewReader(string(clean)), false,
			func(urllist.Bad) {})
		if err != nil {
			return // only the skipped lines revealed the encoding
		}
		if again.ContentType == list.ContentType && again.Good != good {
			t.Errorf("%d good lines, then %d", good, again.Good)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
