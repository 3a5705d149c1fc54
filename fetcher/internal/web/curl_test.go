package web

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/curl"
)

// Requests arrive as the curl command says, and as redirects change them.
func TestCurlRequests(t *testing.T) {
	var got []string
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := fmt.Sprintf("%s %s%s %q", r.Method, r.Host, r.RequestURI, body)
		for _, name := range []string{"User-Agent", "Accept", "Authorization", "Cookie",
			"Content-Type", "X"} {
			if value := r.Header.Get(name); value != "" {
				text += " " + name + "=" + value
			}
		}
		got = append(got, text)
		if to := r.URL.Query().Get("to"); to != "" {
			status := http.StatusFound
			if r.URL.Path == "/again" {
				status = http.StatusPermanentRedirect
			}
			http.Redirect(w, r, to, status)
		}
	})
	const command = " -H 'X: y' -b a=b -u u:p -d c=d"
	const all = " User-Agent=T Accept=*/* Authorization=Basic dTpw Cookie=a=b " +
		"Content-Type=application/x-www-form-urlencoded X=y"
	for name, c := range map[string]struct {
		command string
		want    []string
	}{
		"a form": {"curl http://a.example/x?y=z" + command,
			[]string{`POST a.example/x?y=z "c=d"` + all}},
		"a body with GET": {"curl http://a.example/ -XGET -A me -H Accept: -H " +
			"Content-Type:a/b -d '{}'",
			[]string{`GET a.example/ "{}" User-Agent=me Content-Type=a/b`}},
		"without a body": {"curl http://a.example/ -X DELETE",
			[]string{`DELETE a.example/ "" User-Agent=T Accept=*/*`}},
		"302 becomes a GET": {"curl 'http://a.example/?to=/end'" + command,
			[]string{`POST a.example/?to=/end "c=d"` + all,
				`GET a.example/end "" User-Agent=T Accept=*/* Authorization=Basic dTpw Cookie=a=b X=y`}},
		"308 repeats": {"curl 'http://a.example/again?to=/end'" + command,
			[]string{`POST a.example/again?to=/end "c=d"` + all, `POST a.example/end "c=d"` + all}},
		"another origin": {"curl 'http://a.example/again?to=http://b.example/end'" + command,
			[]string{`POST a.example/again?to=http://b.example/end "c=d"` + all,
				`POST b.example/end "c=d" User-Agent=T Accept=*/* Content-Type=application/x-www-form-urlencoded X=y`}},
	} {
		t.Run(name, func(t *testing.T) {
			as, err := curl.Parse(c.command)
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			page, err := newTransport(client, Config{UserAgent: "T"}, nil).Fetch(t.Context(),
				Request{URL: as.URL, As: as})
			if err != nil {
				t.Fatal(err)
			}
			page.Release()
			if !slices.Equal(got, c.want) {
				t.Errorf("requests are\n%s\nwant\n%s", strings.Join(got, "\n"),
					strings.Join(c.want, "\n"))
			}
		})
	}
}
