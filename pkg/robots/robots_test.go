package robots_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jimsmart/grobotstxt"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/robots"
)

// TestSitemapsOfAFile: sitemaps apply to everyone, wherever they are written, up to a limit.
func TestSitemapsOfAFile(t *testing.T) {
	found := robots.Parse("Sitemap: https://a.example/1.xml\nUser-agent: *\nsitemap: /2.xml\n"+
		"Disallow: /x\nSitemap:\n"+strings.Repeat("Sitemap: /more\n", robots.MaxSitemaps), "Shoal")
	if len(found.Sitemaps) != robots.MaxSitemaps ||
		found.Sitemaps[0] != "https://a.example/1.xml" || found.Sitemaps[1] != "/2.xml" ||
		found.Allow("/x") || found.Size < 5*robots.MaxSitemaps {
		t.Errorf("%d sitemaps, of %d bytes", len(found.Sitemaps), found.Size)
	}
}

// TestRulesEqualGrobotstxt: our rules, parsed once, agree with grobotstxt's own matcher, which
// parses the file every time.
func TestRulesEqualGrobotstxt(t *testing.T) {
	text := func(alphabet string, max int) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 0, max, -1)
	}
	agent := rapid.SampledFrom([]string{"*", "Shoal", "shoal/2.0", "shoalbot", "other", "* x", "",
		"*x"})
	key := rapid.SampledFrom([]string{"Allow", "Disallow", "disalow", "Sitemap", "Crawl-delay",
		"User-agent", "Nonsense"})
	rapid.Check(t, func(t *rapid.T) {
		var body strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			switch k := key.Draw(t, "key"); k {
			case "User-agent":
				fmt.Fprintf(&body, "%s: %s\n", k, agent.Draw(t, "agent"))
			default:
				value := rapid.SampledFrom([]string{"/", "", "*", "/index.html",
					"/a/index.htm"}).Draw(t, "start") + text("/ab*$", 6).Draw(t, "pattern")
				fmt.Fprintf(&body, "%s: %s\n", k, value)
			}
		}
		path := "/" + rapid.SampledFrom([]string{"", "index.html", "a/"}).Draw(t, "start of path") +
			text("ab/?$", 8).Draw(t, "path")
		want := grobotstxt.AgentAllowed(body.String(), "Shoal", "http://x.example"+path)
		if got := robots.Parse(body.String(), "Shoal").Allow(path); got != want {
			t.Errorf("%q: allowed %v, want %v by\n%s", path, got, want, body.String())
		}
	})
}

func TestEscapesCompareAlike(t *testing.T) {
	found := robots.Parse("User-agent: *\nDisallow: /%7Ejoe/\nDisallow: /caf%c3%a9\nDisallow: "+
		"/a%2fb\nDisallow: /ü\n", "Shoal")
	for path, want := range map[string]bool{
		"/~joe/": false, "/%7ejoe/": false, "/caf%C3%A9": false, "/a%2Fb": false, "/a/b": true,
		"/%C3%BC": false, "/%": true, "/%zz": true,
	} {
		if got := found.Allow(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestUnusualCharactersCompareAlike: rules and addresses may escape unusual characters or not.
func TestUnusualCharactersCompareAlike(t *testing.T) {
	const unusual = "{}<>\"^`|\\\x7f\u00fc"
	for _, c := range unusual {
		plain, escaped := "/a"+string(c)+"b", "/a"+url.PathEscape(string(c))+"b"
		for _, rule := range []string{plain, escaped, strings.ToLower(escaped), "/*" + string(c),
			"/*" + string(c) + "b$"} {
			found := robots.Parse("User-agent: *\nDisallow: "+rule+"\n", "Shoal")
			for _, path := range []string{plain, escaped, strings.ToLower(escaped)} {
				if found.Allow(path) || !found.Allow("/a_b") {
					t.Errorf("%q does not tell %q from /a_b", rule, path)
				}
			}
		}
	}
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a*b$\n", "/axb")
	f.Add("\xef\xbb\xbfuser-agent shoal\r\nallow\t/\r\rcrawl-delay: 1e9", "/")
	f.Add("User-agent: *\nDisallow: %\nDisallow: /%f", "/%")
	f.Fuzz(func(t *testing.T, body, path string) {
		found := robots.Parse(body, "Shoal")
		found.Allow("/" + path)
		if found.Delay < 0 || found.Delay > robots.MaxDelay {
			t.Errorf("delay %s", found.Delay)
		}
	})
}
