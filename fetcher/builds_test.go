package fetcher

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// buildPage returns a site's root page, which names its build.
func buildPage(build, deployment string) string {
	return `<script id="__NEXT_DATA__" type="application/json">{"buildId":"` + build +
		`"}</script>` + deployment
}

// A build id that is no longer valid is discovered again without configuration.
func TestBuildIDs(t *testing.T) {
	const root, at1, at2 = "http://a.test/", "http://a.test/_next/data/one/p.json?dpl=d1&x=1",
		"http://a.test/_next/data/two/p.json?dpl=d1&x=1"
	const at3 = "http://a.test/_next/data/two/p.json?dpl=d2&x=1"
	command := "curl '" + at1 + "' -H 'x-deployment-id: d1'"
	meta := `<meta name="x-deployment-id" content="d2">`
	for name, c := range map[string]struct {
		curl string
		root []string
		web  map[string]string
		want string
		asks map[string]int
	}{
		"a new build": {command, []string{buildPage("two", "")}, map[string]string{at1: "404"},
			"0 delivered last",
			map[string]int{at1: 1, root: 1, at2: 1}},
		"and a new deployment": {command, []string{buildPage("two", meta)},
			map[string]string{at1: "404"}, "0 delivered last",
			map[string]int{at1: 1, root: 1, at3: 1}},
		"only a new deployment": {command, []string{buildPage("one", meta)},
			map[string]string{at1: "404"}, "0 delivered last",
			map[string]int{at1: 1, root: 1, "http://a.test/_next/data/one/p.json?dpl=d2&x=1": 1}},
		"the same build": {command, []string{buildPage("one", "")}, map[string]string{at1: "404"},
			"0 errored http_status last",
			map[string]int{at1: 1, root: 1}},
		"no build": {command, []string{"<p>"}, map[string]string{at1: "404"},
			"0 errored http_status last",
			map[string]int{at1: 1, root: 1}},
		"no root": {command, []string{"500"}, map[string]string{at1: "404"},
			"0 errored http_status last", map[string]int{at1: 1, root: 1}},
		"gone all the same": {command, []string{buildPage("two", "")},
			map[string]string{at1: "404", at2: "404"},
			"0 errored http_status last", map[string]int{at1: 1, root: 1, at2: 1}},
		"410": {command, []string{buildPage("two", "")}, map[string]string{at1: "410"},
			"0 errored http_status last", map[string]int{at1: 1}},
		"no such path": {"curl http://a.test/api", nil,
			map[string]string{"http://a.test/api": "404"}, "0 errored http_status last",
			map[string]int{"http://a.test/api": 1}},
		"no curl source": {"", nil, map[string]string{at1: "404"}, "0 errored http_status last",
			map[string]int{at1: 1}},
		"a build that is none": {command, []string{buildPage("../x", "")},
			map[string]string{at1: "404"},
			"0 errored http_status last", map[string]int{at1: 1, root: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, curlRecipe(c.curl, nil), nil)
				defer stop()
				for url, page := range c.web {
					r.web.serve(url, page)
				}
				if c.root != nil {
					r.web.serve(root, c.root...)
				}
				url := at1
				if strings.HasSuffix(c.curl, "/api") {
					url = "http://a.test/api"
				}
				r.send(r.task(0, url))
				p := r.pages(1)[0]
				if got := shorthand(p); got != c.want || p.URL != url || p.Final != "" {
					t.Errorf("page is %q of %s at %q, want %q", got, p.URL, p.Final, c.want)
				}
				if strings.Contains(c.want, "errored") && p.Status != 404 && name != "410" {
					t.Errorf("the status is %d, not the original one", p.Status)
				}
				asked := map[string]int{}
				for _, a := range r.web.asked {
					if !strings.HasSuffix(a, "/robots.txt") {
						asked[a]++
					}
				}
				if !maps.Equal(asked, c.asks) {
					t.Errorf("asked for %v, want %v", asked, c.asks)
				}
			})
		})
	}
}

// A missing page after the last one of a counted chain may belong to an old build. If not, it ends
// the chain.
func TestBehindTheLastPageOfABuild(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const at = "http://a.test/_next/data/one/l.json"
		r, stop := start(t, 1,
			curlRecipe("curl "+at, &model.Pagination{Type: model.URLPageParam, Param: "p"}), nil)
		defer stop()
		r.web.page("http://a.test/", buildPage("one", ""))
		r.web.page(at, "<h1>x</h1>")
		r.web.serve(at+"?p=2", "404")
		r.send(r.task(0, at))
		pages := r.pages(2)
		if got := shorthand(pages[1]); got != "1 empty last" || r.count("http://a.test/") != 1 {
			t.Errorf("page is %q; asked for %q", got, r.web.asked)
		}
	})
}

// A discovered build id is used from then on, also in the header.
func TestBuildIDIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const at1, at2 = "http://a.test/_next/data/one/p.json",
			"http://a.test/_next/data/two/p.json"
		r, stop := start(t, 1, curlRecipe("curl "+at1+" -H 'X-Deployment-Id: d1' -H 'a: b'", nil),
			nil)
		defer stop()
		r.web.page("http://a.test/", buildPage("two", `<meta name="deployment-id" content="d2">`))
		r.web.serve(at1, "404")
		var got []string
		r.web.at(at2, r.web.note(&got))
		r.send(r.task(0, at1))
		r.pages(1)
		r.send(r.task(1, at1))
		r.pages(1)
		want := `GET "" X-Deployment-Id=d2 a=b Accept=*/* ` + at2
		if !slices.Equal(got, []string{want, want}) || r.count("http://a.test/") != 1 ||
			r.count(at1) != 1 {
			t.Errorf("requests are %q; asked for %q", got, r.web.asked)
		}
	})
}
