package address

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/fault"
)

func TestCanonical(t *testing.T) {
	for url, want := range map[string]string{
		"http://example.com":                       "http://example.com/",
		"https://example.com/a?b=1&a=2":            "https://example.com/a?b=1&a=2",
		"HTTP://WWW.Example.COM:80/A":              "http://www.example.com/A",
		"https://example.com:443/":                 "https://example.com/",
		"https://example.com:8443/":                "https://example.com:8443/",
		"http://example.com:443/":                  "http://example.com:443/",
		"http://user:secret@example.com/x":         "http://example.com/x",
		"http://example.com/a#fragment":            "http://example.com/a",
		"http://example.com#fragment":              "http://example.com/",
		"http://example.com?q=1":                   "http://example.com/?q=1",
		"http://example.com/a/../b/./c":            "http://example.com/b/c",
		"http://example.com/a/%2e%2E/b":            "http://example.com/b",
		"http://example.com/a%2Fb":                 "http://example.com/a%2Fb",
		"http://example.com//a//b":                 "http://example.com//a//b",
		"http://example.com/ä b":                   "http://example.com/%C3%A4%20b",
		" \thttp://example.com/a\nb ":              "http://example.com/ab",
		"http://bücher.example/":                   "http://xn--bcher-kva.example/",
		"http://0x7f.1/":                           "http://127.0.0.1/",
		"http://2130706433/":                       "http://127.0.0.1/",
		"http://[::FFFF:127.0.0.1]/":               "http://[::ffff:7f00:1]/",
		"http:\\\\example.com\\a":                  "http://example.com/a",
		"http://example.com/?q=it's":               "http://example.com/?q=it%27s",
		"https://example.com/?filter[a]=1|2&x=%zz": "https://example.com/?filter[a]=1|2&x=%zz",
		"http://example.com/" + strings.Repeat("a", Longest-19): "http://example.com/" +
			strings.Repeat("a", Longest-19),
	} {
		got, err := Canonical(url)
		if err != nil || got != want {
			t.Errorf("Canonical(%q) = %q, %v; want %q", url, got, err, want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, url := range []string{
		"", "example.com", "/path", "ftp://example.com/", "javascript:alert(1)", "http://",
		"http:///", "http://?",
		"http://exa mple.com/", "http://example.com:99999/", "http://[::1/", "http://%00/",
		"file:///etc/passwd",
		"http://" + strings.Repeat("a", Longest), "http://1.2.3.4.5/", "http://256.0.0.1/",
	} {
		if got, err := Canonical(url); fault.CodeOf(err) != fault.InvalidURL {
			t.Errorf("Canonical(%q) = %q, %v; want INVALID_URL", url, got, err)
		}
	}
}

func TestResolve(t *testing.T) {
	const base = "https://shop.example/list/page?p=1"
	for ref, want := range map[string]string{
		"?p=2":                     "https://shop.example/list/page?p=2",
		"next":                     "https://shop.example/list/next",
		"/a#b":                     "https://shop.example/a",
		"//other.example/x":        "https://other.example/x",
		"http://other.example":     "http://other.example/",
		"http://0x7f.1/x":          "http://127.0.0.1/x",
		"":                         "https://shop.example/list/page?p=1",
		"https://u:p@shop.example": "https://shop.example/",
	} {
		if got, err := Resolve(base, ref); err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", ref, got, err, want)
		}
	}
	for _, ref := range []string{"mailto:a@b.example", "javascript:void(0)", "http://[",
		"data:text/html,x"} {
		if got, err := Resolve(base, ref); fault.CodeOf(err) != fault.InvalidURL {
			t.Errorf("Resolve(%q) = %q, %v; want INVALID_URL", ref, got, err)
		}
	}
}

func TestIsRegistrable(t *testing.T) {
	for name, want := range map[string]bool{"shop.example": true, "shop.co.uk": true,
		"me.github.io": true, "xn--bcher-kva.example": true, "www.shop.example": false,
		"co.uk": false, "github.io": false, "example": false, "localhost": false, "": false,
		"127.0.0.1": false, "2001:db8::1": false, "shop.example.": false, ".example": false} {
		if got := IsRegistrable(name); got != want {
			t.Errorf("IsRegistrable(%q) = %v", name, got)
		}
	}
}

func TestDomainOf(t *testing.T) {
	for authority, want := range map[string]string{"www.shop.co.uk": "shop.co.uk",
		"www.shop.co.uk:8443": "shop.co.uk", "127.0.0.1:80": "127.0.0.1",
		"[2001:db8::1]:81": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "h0": "h0"} {
		if got := DomainOf(authority); got != want {
			t.Errorf("DomainOf(%q) = %q, want %q", authority, got, want)
		}
	}
}

func TestHostAndDomain(t *testing.T) {
	for url, want := range map[string][2]string{
		"https://www.shop.co.uk:8443/a:b@c": {"www.shop.co.uk", "shop.co.uk"},
		"http://a.b.example/":               {"a.b.example", "b.example"},
		"http://127.0.0.1:80/":              {"127.0.0.1", "127.0.0.1"},
		"http://[2001:db8::1]:81/":          {"2001:db8::1", "2001:db8::1"},
		"http://localhost/":                 {"localhost", "localhost"},
		"http://co.uk/":                     {"co.uk", "co.uk"},
		"http://shop.example./":             {"shop.example.", "shop.example"},
	} {
		host := HostOf(url)
		if got := [2]string{host, RegistrableDomain(host)}; got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// checkScan fails if scan and the standard disagree, or if the canonical form is not final.
func checkScan(t interface {
	Errorf(format string, args ...any)
}, url string) {
	slow, slowErr := parseSlowly(url)
	if fast, ok := scan(url); ok {
		_, notIP := netip.ParseAddr(slow.Host)
		slow.Named = notIP != nil
		if slowErr != nil || fast != slow {
			t.Errorf("%q: scan says %+v, the standard %+v, %v", url, fast, slow, slowErr)
		}
	}
	if slowErr != nil {
		return
	}
	if again, err := Canonical(slow.Canonical); err != nil || again != slow.Canonical {
		t.Errorf("%q: canonical %q becomes %q, %v", url, slow.Canonical, again, err)
	}
	if host := strings.Trim(slow.Host, "[]"); HostOf(slow.Canonical) != host {
		t.Errorf("%q: Host is %q, want %q", url, HostOf(slow.Canonical), host)
	}
}

func TestScanEqualsStandard(t *testing.T) {
	part := func(alphabet string) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 0, 12, -1)
	}
	host := rapid.OneOf(part("ab.-1"), rapid.SampledFrom([]string{
		"example.com", "www.shop.co.uk", "xn--bcher-kva.de", "xn--a.de", "127.0.0.1", "127.0.0.01",
		"256.1.1.1", "1.2.3.4.", "1.2", "0x7f.1", "a.0x1", "a..b",
		"localhost", "[::1]", "a_b.de", "A.de", "ab--c.de", "9.de", "de.9", "a.b.", "u@a.de",
		"ä.de",
	}))
	port := rapid.SampledFrom([]string{"", "", "", ":", ":80", ":443", ":8080", ":080", ":0",
		":65535", ":65536", ":x"})
	target := part("/.ab%2eE?&=;:@#'[]|{}^`\\ \"<>~\té")
	rapid.Check(t, func(t *rapid.T) {
		scheme := rapid.SampledFrom([]string{"http://", "https://", "HTTP://", "http:/",
			"ftp://"}).Draw(t, "scheme")
		slash := rapid.SampledFrom([]string{"", "/", "/", "/"}).Draw(t, "slash")
		checkScan(t, scheme+host.Draw(t, "host")+port.Draw(t, "port")+slash+target.Draw(t,
			"target"))
	})
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"http://example.com/a?b#c", "https://a.b-c.example:8443/x/../y%2e", "http://0x7f.1",
		"http://[::1]:80/", "http:a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) { checkScan(t, url) })
}

var benchURL = "https://www.shop-example.co.uk/category/shoes/product-12345.html?color=blue&size=42&ref=list"

func BenchmarkCanonical(b *testing.B) {
	for b.Loop() {
		if _, err := Canonical(benchURL); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonicalUnusual(b *testing.B) {
	for b.Loop() {
		if _, err := Canonical("https://WWW.example.com/ä b?q='"); err != nil {
			b.Fatal(err)
		}
	}
}
