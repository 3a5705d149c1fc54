package synthweb

import (
	"testing"
	"time"
)

// FuzzParse: no path does harm, and a known page is found again under its own path.
func FuzzParse(f *testing.F) {
	mix := Mix{}
	for class := Product; class <= API; class++ {
		mix = append(mix, Share{class, 1})
	}
	var webs []*Web
	for _, config := range []Config{{Hosts: 3, PagesPerHost: 30, Mix: mix, Sitemaps: true,
		SitemapURLs: 12}, {Hosts: 3, Template: []byte(templateNumber)}} {
		web, err := New(config)
		if err != nil {
			f.Fatal(err)
		}
		webs = append(webs, web)
		for host := range config.Hosts {
			for n := range 30 {
				p := web.startPage(host, n)
				f.Add(host, web.path(p))
				if p.class == Redirect {
					for next, ok := web.next(p); ok; next, ok = web.next(next) {
						f.Add(int(next.host), web.path(next))
					}
				}
			}
		}
	}
	for _, path := range []string{"", "/", "//", "/robots.txt", "/list/1?page=2", "/list/1?page=-2",
		"/p/99999999999999999", "/item/3-1", "/landing/1-2", "/hop/0-0", "/product/1?%zz",
		"/sitemap.xml", "/sitemap-1.xml", "/sitemap-3.xml", "/sitemap-4.xml", "/sitemap-01.xml",
		"/sitemap1.xml", "/unknown/1", "/robots.txt/1"} {
		f.Add(0, path)
	}
	f.Fuzz(func(t *testing.T, host int, path string) {
		for _, web := range webs {
			p := web.parse(int(uint(host)%3), path)
			if p.class == unknown {
				continue
			}
			if again := web.parse(int(p.host), web.path(p)); again != p {
				t.Fatalf("%q is %+v, but %q is %+v", path, p, web.path(p), again)
			}
		}
	})
}

func TestEveryStartPageIsKnown(t *testing.T) {
	web, err := New(Config{Hosts: 20, PagesPerHost: 200, Mix: Rough(), SlowHosts: 3,
		SlowLatency: 1})
	if err != nil {
		t.Fatal(err)
	}
	slow := 0
	for host := range 20 {
		if web.slow(host) {
			slow++
		}
		for n := range 200 {
			p := web.startPage(host, n)
			if got := web.parse(host, web.path(p)); got != p {
				t.Fatalf("%s is %+v, want %+v", web.path(p), got, p)
			}
			for next, ok := web.next(p); ok; next, ok = web.next(next) {
				if got := web.parse(int(next.host), web.path(next)); got != next {
					t.Fatalf("%s is %+v, want %+v", web.path(next), got, next)
				}
			}
		}
	}
	if slow != 3 {
		t.Errorf("%d slow sites, want 3", slow)
	}
}

func TestLatencies(t *testing.T) {
	web, err := New(Config{Hosts: 10, PagesPerHost: 100,
		Latencies: []LatencyShare{{9, 0, time.Second}, {1, time.Minute, time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for host := range 10 {
		for n := range 100 {
			switch waited := web.latency(web.startPage(host, n)); {
			case waited >= time.Minute && waited < time.Hour:
				late++
			case waited < 0 || waited >= time.Second:
				t.Errorf("an answer waits %v", waited)
			}
		}
	}
	if late < 60 || late > 150 {
		t.Errorf("%d of 1,000 answers wait long, want about 100", late)
	}
}
