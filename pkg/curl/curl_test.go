package curl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// show writes a request in a form that is easy to compare.
func show(r *Request) string {
	text := r.Method + " " + r.URL + "\n"
	for _, field := range r.Header {
		text += field.Name + ": " + field.Value + "\n"
	}
	return text + "\n" + string(r.Body)
}

// copied are commands as the named browsers copy them.
var copied = map[string]struct{ command, want string }{
	"Chrome, bash": {`curl 'https://shop.test/api/items?cat=7&q=a%20b' \
  -H 'accept: application/json, text/plain, */*' \
  -H 'accept-language: en-GB,en;q=0.9' \
  -b '_ga=GA1.1.5; session=eyJ0; consent={"a":1}' \
  -H 'if-none-match: W/"5e"' \
  -H 'priority: u=1, i' \
  -H 'sec-ch-ua: "Chromium";v="124", "Not-A.Brand";v="99"' \
  -H 'x-empty;' \
  -H 'user-agent: Mozilla/5.0 (X11; Linux x86_64)'`, `GET https://shop.test/api/items?cat=7&q=a%20b
accept: application/json, text/plain, */*
accept-language: en-GB,en;q=0.9
priority: u=1, i
sec-ch-ua: "Chromium";v="124", "Not-A.Brand";v="99"
x-empty: 
user-agent: Mozilla/5.0 (X11; Linux x86_64)
Cookie: _ga=GA1.1.5; session=eyJ0; consent={"a":1}

`},
	"Chrome, bash, a body with an apostrophe": {`curl 'https://shop.test/graphql' \
  -H 'content-type: application/json' \
  --data-raw $'{"query":"{ it(name: \\"Tom\'s\\") { id } }","x":"a\u0021\\u0021\nb"}' \
  --compressed ;`, `POST https://shop.test/graphql
content-type: application/json
Accept: */*

{"query":"{ it(name: \"Tom's\") { id } }","x":"a!\u0021
b"}`},
	"Chrome, bash, older": {`curl 'https://shop.test/a?f\[x\]=1' \
  -X 'PUT' \
  -H 'authority: shop.test' \
  -H 'content-length: 0' \
  --compressed`, `PUT https://shop.test/a?f[x]=1
Accept: */*

`},
	"Chrome, cmd": {"curl ^\"https://shop.test/api?a=1^&b=^%^D0^%^91^\" ^\n" +
		"  -H ^\"accept: */*^\" ^\n" +
		"  -b ^\"a=b; c=^\\^\"d^\\^\"^\" ^\n" +
		"  -H ^\"sec-ch-ua: ^\\^\"Chromium^\\^\";v=^\\^\"124^\\^\"^\" ^\n" +
		"  --data-raw ^\"^{^\\^\"p^\\^\":^\\^\"C:^\\^\\x^\\^\",^\n\n^\\^\"n^\\^\":1^}^\"", `POST https://shop.test/api?a=1&b=%D0%91
accept: */*
sec-ch-ua: "Chromium";v="124"
Cookie: a=b; c="d"
Content-Type: application/x-www-form-urlencoded

{"p":"C:\x",` + "\n" + `"n":1}`},
	"Chrome, cmd, older": {"curl \"https://shop.test/api?a=1&b=2\" ^\n" +
		"  -H \"accept: */*\" ^\n" +
		"  -H \"sec-ch-ua: ^\\^\"Chromium^\\^\";v=^\\^\"99^\\^\"\" ^\n" +
		"  --compressed", `GET https://shop.test/api?a=1&b=2
accept: */*
sec-ch-ua: "Chromium";v="99"

`},
	"Chrome, bash, of http": {"curl 'http://shop.test/api' \\\n  -H 'Accept: */*' \\\n  --insecure",
		"GET http://shop.test/api\nAccept: */*\n\n"},
	"Firefox, bash": {`curl 'https://shop.test/list?a[]=1' \
  --globoff \
  --compressed \
  -X POST \
  -H 'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0' \
  -H 'Content-Type: application/x-www-form-urlencoded; charset=UTF-8' \
  -H 'Connection: keep-alive' \
  -H 'Cookie: a=b' \
  -H 'TE: trailers' \
  --data-raw $'name=Andr\xc3\xa9&page=1&e=\ud83d\ude00\041'`, `POST https://shop.test/list?a[]=1
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0
Content-Type: application/x-www-form-urlencoded; charset=UTF-8
Cookie: a=b
Accept: */*

name=André&page=1&e=😀!`},
	"Firefox, bash, multipart": {`curl 'https://shop.test/form' -X POST \
  -H 'Content-Type: multipart/form-data; boundary=----geckoformboundary1' \
  -H 'Content-Length: 999' \
  --data-binary $'------geckoformboundary1\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n------geckoformboundary1--\r\n'`,
		"POST https://shop.test/form\nContent-Type: multipart/form-data; " +
			"boundary=----geckoformboundary1\nAccept: */*\n\n" +
			"------geckoformboundary1\r\nContent-Disposition: form-data; " +
			"name=\"a\"\r\n\r\n1\r\n------geckoformboundary1--\r\n"},
	"Firefox, cmd": {"curl.exe ^\"https://shop.test/api?a=1^&p=100^%^25^\" ^\r\n" +
		"  --compressed ^\r\n" +
		"  -X POST ^\r\n" +
		"  -H ^\"Accept: */*^\" ^\r\n" +
		"  -H ^\"X-Q: it^'s ^\\^\"so^\\^\" ^^ ^| ^<b^>^\" ^\r\n" +
		"  --data-raw ^\"a=1^&b=^!^\"", `POST https://shop.test/api?a=1&p=100%25
Accept: */*
X-Q: it's "so" ^ | <b>
Content-Type: application/x-www-form-urlencoded

a=1&b=!`},
	"Safari, bash": {`curl 'https://shop.test/api?f=\{x\}' \
-X 'POST' \
-H 'Accept: application/json' \
-H 'Sec-Fetch-Site: same-origin' \
-H 'Content-Length: 7' \
-H 'Host: shop.test' \
--data 'a=1&b=2'`, `POST https://shop.test/api?f={x}
Accept: application/json
Sec-Fetch-Site: same-origin
Content-Type: application/x-www-form-urlencoded

a=1&b=2`},
	"Safari, bash, a GET": {`curl 'https://shop.test/' \
-X 'GET' \
-H 'Cookie: a=b; c=d'`, `GET https://shop.test/
Cookie: a=b; c=d
Accept: */*

`},
	"Safari, cmd": {"curl ^\"https://shop.test/^\" ^\n-X ^\"GET^\" ^\n-H ^\"Accept: text/html^\"", `GET https://shop.test/
Accept: text/html

`},
}

func TestCopiedByBrowsers(t *testing.T) {
	for name, c := range copied {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.command)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, show(got)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for command, want := range map[string]string{
		"curl shop.test":                                                      "GET http://shop.test\nAccept: */*\n\n",
		"curl https://shop.test/#top":                                         "GET https://shop.test/\nAccept: */*\n\n",
		"curl --url https://shop.test -sSL":                                   "GET https://shop.test\nAccept: */*\n\n",
		`curl "https://shop.test/?a=\$x" -A 'b "c"'`:                          "GET https://shop.test/?a=$x\nUser-Agent: b \"c\"\nAccept: */*\n\n",
		"curl https://shop.test -XDELETE -HA:b -H 'Accept:'":                  "DELETE https://shop.test\nA: b\n\n",
		"curl -e https://a.test/ https://shop.test":                           "GET https://shop.test\nReferer: https://a.test/\nAccept: */*\n\n",
		"curl -u me:se:cret https://shop.test":                                "GET https://shop.test\nAuthorization: Basic bWU6c2U6Y3JldA==\nAccept: */*\n\n",
		"curl --oauth2-bearer abc https://shop.test":                          "GET https://shop.test\nAuthorization: Bearer abc\nAccept: */*\n\n",
		"curl -I https://shop.test":                                           "HEAD https://shop.test\nAccept: */*\n\n",
		"curl -b a=b -b 'c=d;' https://shop.test":                             "GET https://shop.test\nCookie: a=b; c=d\nAccept: */*\n\n",
		"curl -b a=b -H 'cookie: x=y' https://shop.test":                      "GET https://shop.test\ncookie: x=y\nAccept: */*\n\n",
		"curl -G -d a=1 --data-urlencode 'q=ü &' 'https://shop.test/s?x=0#y'": "GET https://shop.test/s?x=0&a=1&q=%C3%BC%20%26\nAccept: */*\n\n",
		"curl -d a=1 -d b=2 https://shop.test": "POST https://shop.test\nAccept: */*\n" +
			"Content-Type: application/x-www-form-urlencoded\n\na=1&b=2",
		"curl -d '' https://shop.test":                                    "POST https://shop.test\nAccept: */*\nContent-Type: application/x-www-form-urlencoded\n\n",
		"curl -XGET -d '{}' -H 'Content-Type: a/b' https://shop.test":     "GET https://shop.test\nContent-Type: a/b\nAccept: */*\n\n{}",
		"curl --data-raw @x https://shop.test -H content-type:text/plain": "POST https://shop.test\ncontent-type: text/plain\nAccept: */*\n\n@x",
		`curl --json '{"a":' --json '1}' https://shop.test`: "POST https://shop.test\nContent-Type: application/json\nAccept: application/json\n\n" +
			`{"a":1}`,
		"curl --data-urlencode '=a b' --data-urlencode 'c d' https://shop.test": "POST https://shop.test\nAccept: */*\n" +
			"Content-Type: application/x-www-form-urlencoded\n\na%20b&c%20d",
		"curl -H ':authority: shop.test:8080' https://shop.test:8080/": "GET https://shop.test:8080/\nAccept: */*\n\n",
		"curl 'https://shop.test/{{A}}' -H 'B: {{C}}'":                 "GET https://shop.test/{{A}}\nB: {{C}}\nAccept: */*\n\n",
		"curl 'https://shop.test/?f[a]=1&g[1]=2'":                      "GET https://shop.test/?f[a]=1&g[1]=2\nAccept: */*\n\n",
		"curl -g 'https://shop.test/[1-3]'":                            "GET https://shop.test/[1-3]\nAccept: */*\n\n",
		"curl https://shop.test \\\n  -H 'a: b' # the list":            "GET https://shop.test\na: b\nAccept: */*\n\n",
	} {
		got, err := Parse(command)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		} else if diff := cmp.Diff(want, show(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}

func TestForms(t *testing.T) {
	got,
		err := Parse(`curl https://shop.test -F a=1 -F 'b="x;y";type=text/plain' --form-string 'c=@z;type=q' -H 'X: y'`)
	if err != nil {
		t.Fatal(err)
	}
	media, _ := got.field("content-type")
	_, boundary, _ := strings.Cut(media, "multipart/form-data; boundary=")
	want := "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n" +
		"--B\r\nContent-Disposition: form-data; name=\"b\"\r\nContent-Type: " +
		"text/plain\r\n\r\nx;y\r\n" +
		"--B\r\nContent-Disposition: form-data; name=\"c\"\r\n\r\n@z;type=q\r\n--B--\r\n"
	if body := strings.ReplaceAll(string(got.Body), boundary, "B"); got.Method != "POST" ||
		boundary == "" || body != want {
		t.Errorf("form is %s %q\n%s", got.Method, media, got.Body)
	}
}

// TestRefused: what would use files, other hosts or a shell is refused by name.
func TestRefused(t *testing.T) {
	const to = " https://shop.test"
	for command, named := range map[string]string{
		"":                                  "begins with the word curl",
		"wget" + to:                         "begins with the word curl",
		"curl":                              "exactly one address",
		"curl a.test b.test":                "exactly one address",
		"curl https://shop.test/?a=1&b=2":   "quoted",
		"curl https://shop.test/?a=1;b":     "quoted",
		"curl" + to + "; rm -rf x":          "exactly one command",
		"curl" + to + "\nid":                "exactly one command",
		"curl" + to + " && id":              "only a single curl",
		"curl" + to + " | sh":               "only a single curl",
		"! curl" + to:                       "only a single curl",
		"(curl" + to + ")":                  "only a single curl",
		"curl" + to + " > x":                "redirections",
		"curl" + to + " < x":                "redirections",
		"curl" + to + " &":                  "exactly one command",
		"A=b curl" + to:                     "variables",
		"curl $URL":                         "a variable",
		`curl "https://$HOST/"`:             "a variable",
		"curl $(id)" + to:                   "another command",
		"curl `id`" + to:                    "another command",
		`curl "https://shop.test/$(id)"`:    "another command",
		"curl -d <(id)" + to:                "another command",
		"curl https://shop.test/$((1+1))":   "a calculation",
		"curl https://shop.test/{a,b}":      "braces",
		"curl 'https://shop.test/{a,b}'":    "several",
		"curl 'https://shop.test/p[1-9]'":   "several",
		"curl 'https://shop.test/p[a-z:2]'": "several",
		"curl ~/x":                          "~",
		"curl 'https://shop.test":           "cannot read",
		"curl ftp://shop.test/":             "http or https",
		"curl file:///etc/passwd":           "http or https",
		"curl https://{{A}}.test/":          "placeholders",
		"curl 'http{{A}}://shop.test/'":     "placeholders",
		"curl -d @f" + to:                   "-",
		"curl --data @f" + to:               "--data with @",
		"curl --data-binary @f" + to:        "--data-binary with @",
		"curl --data-urlencode @f" + to:     "--data-urlencode with @",
		"curl --data-urlencode n@f" + to:    "--data-urlencode with @",
		"curl --json @f" + to:               "--json with @",
		"curl -H @f" + to:                   "-H with @",
		"curl -F a=@f" + to:                 "-F with @",
		"curl -F 'a=<f'" + to:               "-F with @ or <",
		"curl -b jar.txt" + to:              "-b without =",
		"curl -b ''" + to:                   "-b without =",
		"curl -u me" + to:                   "-u",
		"curl -u 'me:{{A}}'" + to:           "placeholders",
		"curl -o f" + to:                    "-o",
		"curl -of" + to:                     "-o",
		"curl -sO" + to:                     "-O",
		"curl -T f" + to:                    "-T",
		"curl -K f" + to:                    "-K",
		"curl -c f" + to:                    "-c",
		"curl -D -" + to:                    "-D",
		"curl -n" + to:                      "-n",
		"curl -k" + to:                      "-k",
		"curl --insecure" + to:              "--insecure",
		"curl -x p:1" + to:                  "-x",
		"curl -E c" + to:                    "-E",
		"curl -w x" + to:                    "-w",
		"curl --proxy p:1" + to:             "--proxy",
		"curl --socks5 p:1" + to:            "--socks5",
		"curl --resolve a:1:b" + to:         "--resolve",
		"curl --connect-to a:1:b:2" + to:    "--connect-to",
		"curl --unix-socket /s" + to:        "--unix-socket",
		"curl --interface lo" + to:          "--interface",
		"curl --cert c" + to:                "--cert",
		"curl --netrc" + to:                 "--netrc",
		"curl --doh-url d" + to:             "--doh-url",
		"curl --location-trusted" + to:      "--location-trusted",
		"curl" + to + " --next" + to:        "--next",
		"curl -r 0-9" + to:                  "-r",
		"curl --frobnicate" + to:            "--frobnicate",
		"curl -y 3" + to:                    "-y",
		"curl --":                           "--",
		"curl -H":                           "-H needs a value",
		"curl -H novalue" + to:              "-H",
		"curl -H 'a b: c'" + to:             "cannot be sent",
		"curl -H $'a: b\\nc: d'" + to:       "line's end",
		"curl -A $'a\\rb'" + to:             "line's end",
		"curl -d $'a\\0b'" + to:             "zero byte",
		"curl -H 'Host: other.test'" + to:   "another host",
		"curl -H ':authority: o.test'" + to: "another host",
		"curl -X 'GET /x HTTP/1.1'" + to:    "method",
		"curl -X CONNECT" + to:              "CONNECT",
		"curl -I -d a" + to:                 "without a body",
		"curl -d a -F b=c" + to:             "exclude",
		"curl -F a" + to:                    "name=text",
		"curl -F 'a=b;filename=x'" + to:     ";type=",
		"curl -e 'x;auto'" + to:             ";auto",
		"curl -d " + strings.Repeat("a", maxBody-20) + " -d " + strings.Repeat("b", 30) +
			to: "at most",
		"curl " + strings.Repeat("-H a:b ", maxFields+1) +
			to: "header fields",
		"curl -H a:" + strings.Repeat("b", maxHeader) +
			to: "at most",
		"curl " + strings.Repeat("-s ", maxWords) +
			to: "words",
		"curl " + strings.Repeat("x",
			MaxCommand): "at most",
		// Windows cmd.
		"curl ^\"https://shop.test/^\" & calc":              "exactly one command",
		"curl ^\"https://shop.test/^\" | more":              "exactly one command",
		"curl ^\"https://shop.test/^\" > f":                 "exactly one command",
		"curl ^\"https://shop.test/^\"\ncalc":               "exactly one command",
		"curl ^\"https://shop.test/^\" ^\n -o ^\"f^\"":      "-o",
		"curl ^\"https://shop.test/^\" ^\n -d ^\"^@f^\"":    "with @",
		"curl ^\"https://shop.test/^\" -H ^\"a: b^\n\nc^\"": "line's end",
	} {
		_, err := Parse(command)
		if fault.CodeOf(err) != fault.SchemaValidation || !strings.Contains(err.Error(), named) {
			t.Errorf("%.80s: error is %v, want one with %q", command, err, named)
		}
	}
}

// TestErrorsHoldNoSecrets: errors are shown to users and logged, so they quote no values.
func TestErrorsHoldNoSecrets(t *testing.T) {
	for _, command := range []string{"curl -H 'Authorization secret' https://shop.test",
		"curl -u secret https://shop.test",
		"curl -H 'Host: secret' https://shop.test", "curl -b secret https://shop.test",
		"curl -F secret https://shop.test",
		"curl -d @secret https://shop.test", "curl -X 'secret secret' https://shop.test",
		"curl https://user:secret@/"} {
		if _, err := Parse(command); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	r,
		err := Parse(`curl 'https://shop.test/_next/data/{{BUILD}}/a.json?t={{T_1}}' -H 'X: {{BUILD}}{{ NOT }}' --json '{"a":{"b":{{T_1}}}}'`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Placeholders()); got != "[BUILD T_1]" {
		t.Errorf("placeholders are %s", got)
	}
	canonical, err := address.Canonical(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{r.URL, canonical} {
		as := *r
		as.URL = address
		filled, ok := as.Fill(map[string]string{"BUILD": "b/1", "T_1": "2", "OTHER": "x"})
		want := `POST https://shop.test/_next/data/b/1/a.json?t=2` +
			"\nX: b/1{{ NOT }}\nContent-Type: application/json\n" +
			"Accept: application/json\n\n" + `{"a":{"b":2}}`
		if !ok || show(filled) != want {
			t.Errorf("filled is %v\n%s", ok, show(filled))
		}
	}
	for name, values := range map[string]map[string]string{
		"none":                   nil,
		"one":                    {"BUILD": "b"},
		"a placeholder":          {"BUILD": "b", "T_1": "{{X}}"},
		"half a placeholder":     {"BUILD": "{{X", "T_1": "}}"},
		"a line's end":           {"BUILD": "b\r\nA: b", "T_1": "1"},
		"a header beyond bounds": {"BUILD": strings.Repeat("b", maxHeader), "T_1": "1"},
	} {
		if filled, ok := r.Fill(values); ok && len(filled.Placeholders()) > 0 || ok &&
			name != "half a placeholder" {
			t.Errorf("%s: filled", name)
		}
	}
}

// TestFillStaysOnTheHost: a value never moves a request to another host.
func TestFillStaysOnTheHost(t *testing.T) {
	r, err := Parse("curl 'https://shop.test/{{A}}'")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"@evil.test/", "/evil.test/", "\\evil.test", "..//evil.test",
		"#", "?x", "\t//evil.test"} {
		filled, ok := r.Fill(map[string]string{"A": value})
		if canonical, err := address.Canonical(filled.URL); ok &&
			(err != nil || !strings.HasPrefix(canonical, "https://shop.test/")) {
			t.Errorf("%q leads to %s", value, canonical)
		}
	}
}

func TestRedirected(t *testing.T) {
	r, err := Parse("curl https://shop.test/a -H 'Authorization: x' -b c=d -H 'X: y' -d a=b")
	if err != nil {
		t.Fatal(err)
	}
	const here, there = "https://shop.test/b", "https://other.test/"
	for _, c := range []struct {
		status int
		to     string
		want   string
	}{
		{301, here,
			"GET https://shop.test/b\nAuthorization: x\nX: y\nCookie: c=d\nAccept: */*\n\n"},
		{302, here,
			"GET https://shop.test/b\nAuthorization: x\nX: y\nCookie: c=d\nAccept: */*\n\n"},
		{303, there, "GET https://other.test/\nX: y\nAccept: */*\n\n"},
		{307, here, "POST https://shop.test/b\nAuthorization: x\nX: y\nCookie: c=d\nAccept: " +
			"*/*\nContent-Type: application/x-www-form-urlencoded\n\na=b"},
		{308, there, "POST https://other.test/\nX: y\nAccept: */*\nContent-Type: " +
			"application/x-www-form-urlencoded\n\na=b"},
		{308, "http://shop.test/b", "POST http://shop.test/b\nX: y\nAccept: */*\nContent-Type: " +
			"application/x-www-form-urlencoded\n\na=b"},
		{307, "https://shop.test:8443/", "POST https://shop.test:8443/\nX: y\nAccept: " +
			"*/*\nContent-Type: application/x-www-form-urlencoded\n\na=b"},
	} {
		if got := show(r.Redirected(c.status, "https://shop.test/a", c.to)); got != c.want {
			t.Errorf("%d to %s:\n%s", c.status, c.to, got)
		}
	}
	head := &Request{Method: "HEAD", URL: "https://shop.test/a"}
	if got := head.Redirected(302, "https://shop.test/a", here); got.Method != "HEAD" {
		t.Errorf("a HEAD becomes %s", got.Method)
	}
	if (*Request)(nil).Redirected(302, "https://shop.test/a", there) != nil {
		t.Error("a plain GET becomes something else")
	}
}

func TestBodyParams(t *testing.T) {
	form := &Request{Header: []egress.Field{{Name: "content-type",
		Value: "application/x-www-form-urlencoded; charset=utf-8"}},
		Body: []byte("a=1&p%5B%5D=x+y&&b&p=2")}
	text := &Request{Header: []egress.Field{{Name: "content-type", Value: "application/json"}},
		Body: []byte(`{"page": 1, "after":null ,"v":{"c/d":["x",{"n":"7"}]}}`)}
	for _, c := range []struct {
		in                        *Request
		param, had, value, become string
	}{
		{form, "a", "1", "2&3", "a=2%263&p%5B%5D=x+y&&b&p=2"},
		{form, "p[]", "x y", "é", "a=1&p%5B%5D=%C3%A9&&b&p=2"},
		{form, "b", "", "9", "a=1&p%5B%5D=x+y&&b=9&p=2"},
		{text, "page", "1", "2", `{"page": 2, "after":null ,"v":{"c/d":["x",{"n":"7"}]}}`},
		{text, "page", "1", "x", `{"page": "x", "after":null ,"v":{"c/d":["x",{"n":"7"}]}}`},
		{text, "after", "", "2", `{"page": 1, "after":"2" ,"v":{"c/d":["x",{"n":"7"}]}}`},
		{text, "/v/c~1d/1/n", "7", `"8`,
			`{"page": 1, "after":null ,"v":{"c/d":["x",{"n":"\"8"}]}}`},
	} {
		had, found := c.in.BodyParam(c.param)
		if become := string(c.in.WithBodyParam(c.param, c.value).Body); !found || had != c.had ||
			become != c.become {
			t.Errorf("%s: had %q, %v; with %q\n%s", c.param, had, found, c.value, become)
		}
	}
	for _, param := range []string{"x", "/v/x", "/v/c~1d/2", "/page/x", ""} {
		for _, r := range []*Request{form, text, {}} {
			if value, found := r.BodyParam(param); found {
				t.Errorf("%q is found: %q", param, value)
			}
		}
	}
}
