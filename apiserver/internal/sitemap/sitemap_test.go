package sitemap_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"shoal.dev/shoal/apiserver/internal/sitemap"
	"shoal.dev/shoal/pkg/address"
)

// read returns what a file names, and how reading it ends.
func read(from io.Reader, charset string) (entries []sitemap.Entry, form sitemap.Form, err error) {
	form, err = sitemap.Read(from, charset, func(e sitemap.Entry) bool {
		entries = append(entries, e)
		return true
	})
	return entries, form, err
}

func packed(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text) // into memory
	_ = z.Close()
	return out.String()
}

const (
	space = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" ` +
		`xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" ` +
		`xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" ` +
		`xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" ` +
		`xmlns:xhtml="http://www.w3.org/1999/xhtml"`
	plain = `<?xml version="1.0" encoding="UTF-8"?><urlset ` + space + `><url><loc>
		https://a.test/1?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod></url></urlset>`
)

// encoded is a text in another encoding.
func encoded(text string, order unicode.Endianness) string {
	out, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		panic(err) // the tests' own text
	}
	return out
}

func latin(text string) string {
	out, err := charmap.ISO8859_1.NewEncoder().String(text)
	if err != nil {
		panic(err) // as above
	}
	return out
}

// forms are files of each form with what they name.
func forms() map[string]struct {
	text, charset string
	form          sitemap.Form
	want          []sitemap.Entry
} {
	one := []sitemap.Entry{{URL: "https://a.test/1?x=1&y=2"}}
	u := func(urls ...string) (entries []sitemap.Entry) {
		for _, url := range urls {
			entries = append(entries, sitemap.Entry{URL: url})
		}
		return entries
	}
	named := `<urlset><url><loc>https://a.test/é</loc></url></urlset>`
	return map[string]struct {
		text, charset string
		form          sitemap.Form
		want          []sitemap.Entry
	}{
		"plain":      {plain, "", sitemap.URLs, one},
		"compressed": {packed(plain), "", sitemap.URLs, one},
		"mark":       {"\xef\xbb\xbf" + plain, "", sitemap.URLs, one},
		"utf-16le": {encoded(strings.ReplaceAll(plain, "UTF-8", "UTF-16"), unicode.LittleEndian),
			"", sitemap.URLs, one},
		"utf-16be":        {encoded(plain, unicode.BigEndian), "", sitemap.URLs, one},
		"unmarked utf-16": {encoded(plain, unicode.LittleEndian)[2:], "", sitemap.URLs, one},
		"says utf-16, is not": {strings.ReplaceAll(plain, "UTF-8", "UTF-16"), "text/xml",
			sitemap.URLs, one},
		"latin by header": {latin(named), "text/xml; charset=ISO-8859-1", sitemap.URLs,
			u("https://a.test/é")},
		"latin by declaration": {latin(`<?xml version='1.0' encoding='iso-8859-1'?>` + named),
			"text/xml; charset=utf-8", sitemap.URLs, u("https://a.test/é")},
		"utf-8 against header": {named, "text/xml; charset=ISO-8859-1", sitemap.URLs,
			u("https://a.test/é")},
		"unknown encoding": {`<?xml version="1.0" encoding="klingon"?>` + named, "", sitemap.URLs,
			u("https://a.test/é")},
		"other prefixes": {`<s:urlset xmlns:s="x" xmlns:i="y"><s:url><i:loc>no</i:loc>` +
			`<s:loc>https://a.test/1</s:loc><i:image><i:loc>/i.png</i:loc></i:image></s:url>` +
			`</s:urlset>`, "", sitemap.URLs, []sitemap.Entry{{URL: "https://a.test/1",
			Image: "/i.png"}}},
		"images": {`<urlset ` + space + `><url><image:image><image:loc>/1.png</image:loc>` +
			`<image:title>A  <![CDATA[red & round]]> ball</image:title>` +
			`<image:caption>c</image:caption></image:image><loc>/1</loc>` +
			`<image:image><image:loc>/2.png</image:loc></image:image></url>` +
			`<url><loc>/2</loc><image:image><image:loc>/3.png</image:loc>` +
			`<image:caption>only this</image:caption></image:image></url>` +
			`<url><loc>/3</loc><video:video><video:title>no</video:title></video:video></url>` +
			`</urlset>`, "", sitemap.URLs, []sitemap.Entry{
			{URL: "/1", Image: "/1.png", ImageTitle: "A red & round ball"},
			{URL: "/2", Image: "/3.png", ImageTitle: "only this"}, {URL: "/3"}}},
		"news": {`<urlset ` + space + `><url><loc>/n</loc><news:news><news:publication>` +
			`<news:name>N</news:name></news:publication><news:title>T</news:title></news:news>` +
			`</url></urlset>`, "", sitemap.URLs, u("/n")},
		"languages": {`<urlset ` + space + `><url><loc>/en</loc>` +
			`<xhtml:link rel="alternate" hreflang="de" href="/de?a=1&amp;b=2"/>` +
			`<xhtml:link rel="alternate" hreflang="en" href="/en"/>` +
			`<xhtml:link rel='canonical' href='/no'></xhtml:link></url></urlset>`, "",
			sitemap.URLs, u("/en", "/de?a=1&b=2")},
		"index": {`<sitemapindex ` + space + `><sitemap><loc>/1.xml</loc></sitemap>` +
			`<sitemap><loc><![CDATA[/2.xml.gz]]></loc></sitemap></sitemapindex>`, "",
			sitemap.Index, []sitemap.Entry{{URL: "/1.xml", Sitemap: true},
				{URL: "/2.xml.gz", Sitemap: true}}},
		"rss": {`<rss version="2.0" xmlns:media="m" xmlns:atom="a"><channel><title>no</title>` +
			`<link>/no</link><atom:link href="/no" rel="self"/><item><title>t</title>` +
			`<link>/1</link><enclosure url="/1.jpg" type="image/jpeg"/></item><item>` +
			`<guid>https://a.test/2</guid><media:content url="/2.jpg" medium="image">` +
			`<media:title>two</media:title></media:content></item><item>` +
			`<guid isPermaLink="false">https://a.test/no</guid></item></channel></rss>`, "",
			sitemap.RSS, []sitemap.Entry{{URL: "/1", Image: "/1.jpg"},
				{URL: "https://a.test/2", Image: "/2.jpg", ImageTitle: "two"}}},
		"rss with links of atom": {`<rss xmlns:a="a"><channel><item>` +
			`<a:link href="https://a.test/no"/><link>/1</link></item><item>` +
			`<guid>https://a.test/no</guid><a:link rel="self" href="https://a.test/no"/>` +
			`<a:link href="https://a.test/2"/><guid>https://a.test/no</guid></item><item>` +
			`<link xmlns="a" rel="alternate" href="https://a.test/3"></link></item><item>` +
			`<link rel="alternate" href="/no">/4</link></item></channel></rss>`, "", sitemap.RSS,
			u("/1", "https://a.test/2", "https://a.test/3", "/4")},
		"rdf": {`<rdf:RDF xmlns:rdf="r" xmlns="s"><channel><link>/no</link></channel><item>` +
			`<link>/1</link></item></rdf:RDF>`, "", sitemap.RSS, u("/1")},
		"atom": {`<feed xmlns="http://www.w3.org/2005/Atom"><link href="/no"/><entry>` +
			`<link rel="self" href="/no"/><link href="/1"/><link rel="enclosure" ` +
			`type="image/png" href="/1.png"/><content type="xhtml"><div><link href="/no"/></div>` +
			`</content></entry></feed>`, "", sitemap.Atom,
			[]sitemap.Entry{{URL: "/1", Image: "/1.png"}}},
		"text": {"\r\n https://a.test/1\t\r\n# a remark\nHTTP://a.test/2\n\nftp://a.test/3", "",
			sitemap.Text, u("https://a.test/1", "HTTP://a.test/2")},
		"nothing": {" \r\n", "", sitemap.Empty, nil},
		"no url":  {`<urlset/>`, "", sitemap.URLs, nil},
		"references": {`<urlset><url><loc>/&#x41;&#66;&lt;&apos;&#0;&#xd800;&;&7;&</loc></url>` +
			`</urlset>`, "", sitemap.URLs, u("/AB<'&#0;&#xd800;&;&7;&")},
		"references to entities": {`<urlset xmlns:image="i"><url><loc>/a&nbsp;b</loc></url>` +
			`<url><loc>/1</loc><image:image><image:loc>/1.png</image:loc>` +
			`<image:title>a&nbsp;b</image:title></image:image></url></urlset>`, "", sitemap.URLs,
			[]sitemap.Entry{{URL: "/1", Image: "/1.png", ImageTitle: "a&nbsp;b"}}},
		"not utf-8": {"<urlset><url><loc>/\xff</loc></url></urlset>", "", sitemap.URLs,
			u("/\ufffd")},
		"comments": {`<!-- <urlset> --><urlset><!-- ' -- > --><url><?p ?><loc>/1<!-- x --></loc>` +
			`</url></urlset><trash`, "", sitemap.URLs, u("/1")},
		"brackets": {`<urlset><url><loc><![CDATA[/]]]]><![CDATA[>a]b]]c]]]></loc></url></urlset>`,
			"", sitemap.URLs, u("/]]>a]b]]c]")},
	}
}

// Files of every form are read correctly, however their bytes come.
func TestForms(t *testing.T) {
	for name, c := range forms() {
		t.Run(name, func(t *testing.T) {
			for way, from := range map[string]io.Reader{"whole": strings.NewReader(c.text),
				"by byte": iotest.OneByteReader(strings.NewReader(c.text)),
				"by half": iotest.HalfReader(strings.NewReader(c.text)),
				"eof":     iotest.DataErrReader(strings.NewReader(c.text))} {
				got, form, err := read(from, c.charset)
				if err != nil || form != c.form || !reflect.DeepEqual(got, c.want) {
					t.Errorf("%s: %q %+v %v, want %q %+v", way, form, got, err, c.form, c.want)
				}
			}
		})
	}
}

// repeated repeats a text up to a given length.
type repeated struct {
	head, text string
	left, at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) && r.left > 0 {
		from := r.head
		if from == "" {
			from = r.text[r.at:]
		}
		copied := copy(p[n:min(len(p), n+r.left)], from)
		if r.head != "" {
			r.head = r.head[copied:]
		} else {
			r.at = (r.at + copied) % len(r.text)
		}
		n, r.left = n+copied, r.left-copied
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Hostile files end in little memory. The entries before the error remain, and the error says what
// is wrong.
func TestHostileFiles(t *testing.T) {
	const first = `<urlset><url><loc>/1</loc></url>`
	bomb := func(inner string) io.Reader {
		r, w := io.Pipe()
		go func() {
			z := gzip.NewWriter(w)
			_, err := io.Copy(z, &repeated{head: first, text: inner, left: 4 << 30})
			_ = w.CloseWithError(errors.Join(err, z.Close()))
		}()
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	entities := `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">` +
		`<!ENTITY c SYSTEM "file:///etc/passwd">%p;<!-- ' ]> --><!ELEMENT x (y)>]>`
	for name, c := range map[string]struct {
		from io.Reader
		want error
		urls []string
	}{
		"a page": {strings.NewReader("<!DOCTYPE html><html><body>no</body></html>"),
			sitemap.ErrNotSitemap, nil},
		"words": {strings.NewReader("Not found"), sitemap.ErrNotSitemap, nil},
		"many words": {&repeated{text: "a line\n", left: 1 << 20}, sitemap.ErrNotSitemap,
			nil},
		"zeros": {&repeated{text: "\x00", left: 1 << 30}, sitemap.ErrTooLarge, nil},
		"cut off": {strings.NewReader(first + "<url><loc>/2"), sitemap.ErrBroken,
			[]string{"/1"}},
		"closed wrongly": {strings.NewReader(first + "<url><loc>/2</url>"), sitemap.ErrBroken,
			[]string{"/1"}},
		"no quotes": {strings.NewReader(first + "<url a=b>"), sitemap.ErrBroken, []string{"/1"}},
		"no name":   {strings.NewReader(first + "< url>"), sitemap.ErrBroken, []string{"/1"}},
		"entities": {strings.NewReader(entities + `<urlset><url><loc>/&b;&c;</loc></url>` +
			`</urlset>`), nil, nil},
		"types without end": {&repeated{head: "<!DOCTYPE x [", text: `<!ENTITY a "a">`,
			left: 1 << 30}, sitemap.ErrTooLarge, nil},
		"depth": {&repeated{head: first, text: "<a>", left: 1 << 30}, sitemap.ErrTooLarge,
			[]string{"/1"}},
		"a long name": {&repeated{head: first + "<", text: "a", left: 1 << 30},
			sitemap.ErrTooLarge, []string{"/1"}},
		"a long attribute": {&repeated{head: first + `<url><x:link href="`, text: "a",
			left: 1 << 30}, sitemap.ErrTooLarge, []string{"/1"}},
		"many attributes": {&repeated{head: first + "<url", text: ` href="a"`, left: 1 << 30},
			sitemap.ErrTooLarge, []string{"/1"}},
		"a long text": {&repeated{head: first + "<url><loc>", text: "&amp;", left: 1 << 30},
			sitemap.ErrTooLarge, []string{"/1"}},
		"a long comment": {&repeated{head: first + "<!--", text: "->-", left: 1 << 30},
			sitemap.ErrTooLarge, []string{"/1"}},
		"long literals": {&repeated{head: first + "<url><loc><![CDATA[", text: "]] >",
			left: 1 << 30}, sitemap.ErrTooLarge, []string{"/1"}},
		"a long line": {&repeated{head: "http://a.test/1\n", text: "http://a.test/", left: 1 << 30},
			sitemap.ErrTooLarge, []string{"http://a.test/1"}},
		"languages without end": {&repeated{head: first + "<url><loc>/2</loc>",
			text: `<x:link rel="alternate" href="/3"/>`, left: 1 << 30}, sitemap.ErrTooLarge,
			[]string{"/1"}},
		"a bomb":        {bomb(" "), sitemap.ErrTooLarge, []string{"/1"}},
		"a deeper bomb": {bomb("<url><loc>"), sitemap.ErrTooLarge, []string{"/1"}},
		"half packed":   {strings.NewReader(packed(plain)[:60]), sitemap.ErrBroken, nil},
		"badly packed":  {strings.NewReader("\x1f\x8bnothing of the kind"), sitemap.ErrBroken, nil},
		"packed twice":  {strings.NewReader(packed(packed(plain))), sitemap.ErrNotSitemap, nil},
		"an address that is too long": {strings.NewReader(first + "<url><loc>/" +
			strings.Repeat("x", address.Longest) + "</loc></url></urlset>"), nil,
			[]string{"/1"}},
		"the longest address": {strings.NewReader("<urlset><url><loc>" +
			strings.Repeat("x", address.Longest) + "</loc></url></urlset>"), nil,
			[]string{strings.Repeat("x", address.Longest)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := read(c.from, "")
			var urls []string
			for _, e := range got {
				urls = append(urls, e.URL)
			}
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) ||
				!reflect.DeepEqual(urls, c.urls) {
				t.Errorf("%.200q %v, want %.200q %v", urls, err, c.urls, c.want)
			}
		})
	}
}

// A file may have MaxBytes, but not one byte more. Little memory is used.
func TestLongestFile(t *testing.T) {
	const entry = "<url><loc>https://a.test/a/long/way/to/a/product-of-a-shop.html</loc></url>"
	for more, want := range map[int]error{0: sitemap.ErrBroken, 1: sitemap.ErrTooLarge} {
		from := &repeated{head: "<urlset>", text: entry, left: sitemap.MaxBytes + more}
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		entries, most := 0, uint64(0)
		_, err := sitemap.Read(from, "", func(sitemap.Entry) bool {
			if entries++; entries%50_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
			}
			return true
		})
		if !errors.Is(err, want) || entries < 600_000 || most > 2<<20 {
			t.Errorf("%d entries, %d bytes held, %v", entries, most, err)
		}
	}
}

// Reading stops when the caller wants no more.
func TestEnough(t *testing.T) {
	for _, text := range []string{plain[:len(plain)-len("</urlset>")] + "<url><loc>x",
		"http://a.test/1\nhttp://a.test/2"} {
		n := 0
		_, err := sitemap.Read(strings.NewReader(text), "", func(sitemap.Entry) bool {
			n++
			return false
		})
		if n != 1 || err != nil {
			t.Errorf("%d entries, %v", n, err)
		}
	}
}

// An error of the reader is passed on.
func TestReaderFails(t *testing.T) {
	broken := errors.New("the line is dead")
	for _, text := range []string{"", "<urlset><url>", packed(plain)[:40], "http://a.test/"} {
		_, _, err := read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), "")
		if !errors.Is(err, broken) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestChunksMakeNoDifference: a file read in any parts gives the same as read whole.
func TestChunksMakeNoDifference(t *testing.T) {
	parts := []string{"<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "/1", "&amp;",
		"&#65;", "<![CDATA[", "]]>", "]", "<!--", "-->", "-", "<x:image>", "</x:image>", "<x:loc>",
		"</x:loc>", `<x:link rel="alternate" href="/2"/>`, "<!DOCTYPE a [", "]>", "'", "\"", "é",
		" ", "\n", "http://a.test/", "<?p", "?>", "<rss>", "<item>", "<link>", "\xff", "<", ">"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		if rapid.Bool().Draw(t, "begins well") {
			text = "<urlset>" + text
		}
		if rapid.Bool().Draw(t, "is packed") {
			text = packed(text)
		}
		want, form, failure := read(strings.NewReader(text), "")
		cut := rapid.SliceOfN(rapid.IntRange(0, len(text)), 0, 6).Draw(t, "cuts")
		got, other, err := read(&pieces{text: text, cuts: cut}, "")
		if form != other || fmt.Sprint(err) != fmt.Sprint(failure) ||
			!reflect.DeepEqual(want, got) {
			t.Errorf("%q: %q %+v %v, whole %q %+v %v", text, other, got, err, form, want, failure)
		}
	})
}

// pieces is a text that comes in parts.
type pieces struct {
	text string
	cuts []int
	at   int
}

func (r *pieces) Read(p []byte) (int, error) {
	if r.at == len(r.text) {
		return 0, io.EOF
	}
	end := len(r.text)
	for _, cut := range r.cuts {
		if cut > r.at {
			end = min(end, cut)
		}
	}
	n := copy(p, r.text[r.at:end])
	r.at += n
	return n, nil
}

func FuzzRead(f *testing.F) {
	for _, c := range forms() {
		f.Add([]byte(c.text), c.charset)
	}
	f.Fuzz(func(t *testing.T, text []byte, charset string) {
		_, err := sitemap.Read(bytes.NewReader(text), charset, func(e sitemap.Entry) bool {
			if e.URL == "" || len(e.URL) > 3*address.Longest ||
				len(e.ImageTitle) > sitemap.MaxTitle ||
				!utf8.ValidString(e.URL+e.Image+e.ImageTitle) ||
				e.Image == "" && e.ImageTitle != "" {
				t.Errorf("%+v", e)
			}
			return true
		})
		got, _, again := read(iotest.OneByteReader(bytes.NewReader(text)), charset)
		if fmt.Sprint(err) != fmt.Sprint(again) {
			t.Errorf("%v, by byte %v, of %d entries", err, again, len(got))
		}
	})
}

func BenchmarkRead(b *testing.B) {
	const entry = "<url><loc>https://a.test/a/long/way/to/a/product-of-a-shop.html</loc></url>"
	text := "<urlset>" + strings.Repeat(entry, 10_000) + "</urlset>"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := sitemap.Read(strings.NewReader(text), "",
			func(sitemap.Entry) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}
