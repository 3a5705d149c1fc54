package aiconf

import (
	"encoding/json"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
)

// story is a text as long as an article.
var story = "<p>" + strings.Repeat("The bridge over the river has opened, and many came to see it. ",
	9) + "</p><p>" + strings.Repeat("Until night they danced there, with lamps and music. ", 9) + "</p>"

// readArticle reads a page as an article; its members are "" where it gives no row.
func readArticle(t *testing.T, address, body string) (got struct {
	Title, Author, DatePublished, ArticleBody string
}) {
	t.Helper()
	_, rows := read(t, compile(t, articleSchema), page.Page{URL: address,
		ContentType: "text/html", Body: []byte(body)}, unavailable)
	if len(rows) == 1 {
		if err := json.Unmarshal(rows[0], &got); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

// TestArticleIsTitledAsShown: the title is that over the text, whatever stands for machines.
func TestArticleIsTitledAsShown(t *testing.T) {
	const want = "The new bridge opens at last"
	for name, body := range map[string]string{
		"a section's heading before it": `<title>The new bridge opens at last - The Wire</title>
			<h1>Press releases</h1><article><h2>The new bridge opens at last</h2>`,
		"a heading for programs that read aloud": `<title>Wire: The new bridge opens at last</title>
			<h1 class="aural">Navigation and service</h1><main><h1>The new bridge opens at last</h1>`,
		"another title for search engines": `<title>Bridge opens: all you need to know 2026</title>
			<meta property="og:title" content="Bridge opens: all you need to know 2026">
			<article><h1>The new bridge opens at last</h1>`,
		"a title of the section for others": `<title>The new bridge opens at last</title>
			<meta property="og:title" content="Press releases">
			<article><h1>The new bridge opens at last</h1>`,
		"the site and the section in the title": `<title>The Wire » City » The new bridge opens
			at last</title><h1>The Wire</h1><h2>City</h2><h3>The new bridge opens at last</h3>`,
		"a day and a kicker in the heading": `<title>The new bridge opens at last</title>
			<h1><time>1 May 2026</time><span class="kicker">Traffic</span>
			The new bridge opens at last</h1>`,
		"how it is read, above it": `<title>The new bridge opens at last</title>
			<h1><ruby>The<rp>(</rp><rt>thuh</rt><rp>)</rp></ruby> new bridge opens at last</h1>`,
		"something else that is stated": `<title>The new bridge opens at last | Wire</title>
			<script type="application/ld+json">{"@type":"PodcastEpisode","headline":
			"Two founders discuss coding","author":{"@type":"Person","name":"Bo Ek"}}</script>
			<h1>The new bridge opens at last</h1>`,
	} {
		got := readArticle(t, "https://wire.example/a/1", body+story)
		if got.Title != want {
			t.Errorf("%s: %q", name, got.Title)
		}
		if got.Author != "" {
			t.Errorf("%s: by %q", name, got.Author)
		}
	}
}

// TestAuthorAsShown: who wrote an article is found where readers find it.
func TestAuthorAsShown(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"a link": {`<p>3 May 2026 <a href="/author/ann-lee/">Ann Lee</a></p>`, "Ann Lee"},
		"a class": {`<div class="meta"><span class="post-author-name vcard">by Ann Lee</span></div>`,
			"Ann Lee"},
		"before a day":   {`<p>Von Ann Lee am 3. Mai 2026</p>`, "Ann Lee"},
		"behind a day":   {`<p>03.05.2026 - Ann Lee</p>`, "Ann Lee"},
		"two of them":    {`<p>Par Ann Lee et Bo van Ek</p>`, "Ann Lee et Bo van Ek"},
		"beside a label": {`<h4>Autor</h4><p><a href="/x">Ann Lee</a>,</p>`, "Ann Lee"},
		"behind a label": {`<div><b>Autorin: </b>Ann Lee/KNA</div>`, "Ann Lee"},
		"in the east":    {`<div>责任编辑：王小明</div>`, "王小明"},
		"with pictures":  {`<p class="author">Text von Ann Lee, Fotos: Bo Ek</p>`, "Ann Lee"},
		"a preview's label": {`<meta name="twitter:label1" content="Verfasst von">
			<meta name="twitter:data1" content="Ann Lee">`, "Ann Lee"},
		"the site, and someone": {`<meta name="author" content="The Wire GmbH">
			<meta property="og:site_name" content="The Wire"><p>By Ann Lee</p>`, "Ann Lee"},
		"the site beside someone": {`<meta property="og:site_name" content="The Wire">
			<meta name="author" content="The Wire - Ann Lee">`, "Ann Lee"},
		"nobody":        {`<meta name="author" content="admin"><p>By Ann Lee</p>`, "Ann Lee"},
		"the newsroom":  {`<meta name="author" content="Redaktion">`, "Redaktion"},
		"no one":        {`<p>By the way, it rained.</p>`, ""},
		"a commentator": {`<div class="comments"><a class="comment-author">Bo Ek</a></div>`, ""},
		"many of them": {`<ul><li class="author">Bo Ek<li class="author">Cy Oh<li class="author">Ida Po` +
			`<li class="author">Ed Qu</ul>`, ""},
	} {
		got := readArticle(t, "https://wire.example/a/1", `<title>The new bridge opens</title>
			<h1>The new bridge opens</h1>`+c.line+story)
		if got.Author != c.want {
			t.Errorf("%s: %q, want %q", name, got.Author, c.want)
		}
	}
}

// TestDayAsShown: the day of an article is found where readers find it, and no other day.
func TestDayAsShown(t *testing.T) {
	far := strings.Repeat(story, 2)
	for name, c := range map[string]struct{ address, before, behind, want string }{
		"a label behind the text": {before: far,
			behind: `<p>Seen by 7 since 1.1.2020</p><div><b>Mise en ligne</b> 23 mai 2019</div>`,
			want:   "2019-05-23"},
		"a change": {before: far, behind: `<p class="info">Aktualisiert: 30.12.2016</p>`,
			want: "2016-12-30"},
		"published and changed": {before: far, behind: `<p>Updated 3 June 2026</p>` +
			`<p>Published 1 June 2026</p>`, want: "2026-06-01"},
		"the only day": {before: far, behind: `<p>Wien, 3. Mai 2026</p>`, want: "2026-05-03"},
		"several days": {before: far, behind: `<p>Wien, 3. Mai 2026</p><p>Graz, 4. Mai 2026</p>`},
		"in the address": {address: "https://wire.example/SharedDocs/20030331_speech.html",
			want: "2003-03-31"},
		"with its year at the end": {address: "https://wire.example/news/23-01-2022-bridge/17.html",
			want: "2022-01-23"},
		"no day": {address: "https://wire.example/news/20229931_bridge.html"},
		"beside the text": {before: far,
			behind: `<aside><p>Published 1 June 2026</p></aside>`},
	} {
		if c.address == "" {
			c.address = "https://wire.example/a"
		}
		got := readArticle(t, c.address, `<title>The new bridge opens</title>
			<h1>The new bridge opens</h1>`+c.before+story+c.behind)
		if got.DatePublished != c.want {
			t.Errorf("%s: %q, want %q", name, got.DatePublished, c.want)
		}
	}
}
