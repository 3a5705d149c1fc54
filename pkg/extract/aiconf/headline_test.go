package aiconf

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
)

// story is a text as long as an article.
var story = "<p>" + strings.Repeat("The bridge over the river has opened, and many came to see it. ",
	9) + "</p><p>" + strings.Repeat("Until night they danced there, with lamps and music. ", 9) + "</p>"

// readArticle reads a page as an article; all members are "" if it gives no row.
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

// TestArticleIsTitledAsShown: the title is the one above the text, whatever the metadata says.
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
		"the site's name as a link home": `<title>The new bridge opens at last | The Wire of the whole
			city</title><h1><a href="/">The Wire of the whole city</a></h1>
			<h2>The Wire of the whole city</h2><h1>The new bridge opens at last</h1>`,
		"a line between the title and the site": `<title>The Wire --The new bridge opens at last</title>
			<h3>The new bridge opens at last</h3>`,
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

// TestAuthorAsShown: an article's author is found where readers find it.
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
		"nobody":       {`<meta name="author" content="admin"><p>By Ann Lee</p>`, "Ann Lee"},
		"the newsroom": {`<meta name="author" content="Redaktion">`, "Redaktion"},
		"an agency":    {`<div class="author">Von Ann Lee, dpa</div>`, "Ann Lee"},
		"an interview": {`<p class="author">Ann Lee im Gespräch mit Bo Ek</p>`, "Ann Lee, Bo Ek"},
		"a company, and someone": {`<meta name="author" content="Bridges e. V."><p><b>Autorin: Ann
			Lee, Leiterin der City</b></p>`, "Ann Lee"},
		"before a place": {`<p>Von <a href="https://lee.example">Ann Lee</a> und <b>Bo Ek</b><br>
			Kakuma, Kenia</p>`, "Ann Lee und Bo Ek"},
		"a box": {`<div class="author-bio"><h3>Ann Lee</h3><p>writes of bridges</p></div>`, "Ann Lee"},
		"who is seen": {`<meta name="author" content="Bo Ek"><a href="/staff/ann-lee/">Ann Lee</a>`,
			"Ann Lee"},
		"an account": {`<meta name="author" content="annlee"><a href="/staff/ann-lee/">Ann Lee</a>`,
			"Ann Lee"},
		"an office in another element": {`<div class="byline"><b>Ann Lee</b> <i>Wire UK News Fellow</i>
			</div>`, "Ann Lee"},
		"a link in the line, and others": {`<div class="byline--3x"><time>18 January 2026</time> by
			<a rel="author">Ann Lee</a></div><div><a rel="author">Bo Ek</a></div>`, "Ann Lee"},
		"a day that is called a byline": {`<div class="byline">Dec 1st 2016 1:01PM</div>
			<a rel="author">Ann Lee</a>`, "Ann Lee"},
		"near the heading, and many": {`<p>By <a href="/author/ann-lee">Ann Lee</a> in <a>X</a></p>` +
			story + `<p class="author">Bo Ek<p class="author">Cy Oh<p class="author">Ida Po`, "Ann Lee"},
		"a link to an editor": {`<a href="/about/editors/ann-lee/">Ann Lee</a>`, "Ann Lee"},
		"whose the page is, and someone": {`<meta name="author" content="Big House">
			<meta name="copyright" content="Copyright (c) Big House 2026">
			<meta name="article:author" content="Ann Lee">`, "Ann Lee"},
		"whose the page is": {`<meta name="author" content="Bo Ek">
			<meta name="copyright" content="© 2026 Bo Ek">`, "Bo Ek"},
		"signs that nobody sees":   {"<p>By Ann Le\u00ade</p>", "Ann Lee"},
		"said twice":               {`<p><b>By</b><span>by ANN LEE and BO EK</span></p>`, "ANN LEE and BO EK"},
		"behind a day, by one":     {`<p>3. März 2026 von Ann</p>`, "Ann"},
		"before a day, by one":     {`<p>von Ann am 3. März 2026</p>`, "Ann"},
		"behind a day with a mark": {`<p>Posted on March 3, 2026 by Ann Lee in News</p>`, "Ann Lee"},
		"of an agency":             {`<p>Von Ann Lee/dpa</p>`, "Ann Lee"},
		"a column":                 {`<p>Gastkommentar von Ann Lee</p>`, "Ann Lee"},
		"who asks":                 {`<p>Das Interview führte Ann Lee</p>`, "Ann Lee"},
		"an element in line":       {`<span class="by">By <a>Ann Lee</a></span>`, "Ann Lee"},
		"a time behind the name":   {`<p class="author"><a>Ann Lee</a><i>vor 5 Stunden</i></p>`, "Ann Lee"},
		"an office right behind":   {`<p class="author"><b>Ann Lee</b><i>Redakteurin</i></p>`, "Ann Lee"},
		"a box about the author": {`<div class="author-box"><h4>About the author</h4><h3>Ann Lee</h3>
			<p>Ann writes of bridges.</p></div>`, "Ann Lee"},
		"a name in it":  {`<p>Seen by Ann Lee on the bridge, and by Bo Ek</p>`, ""},
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

// TestAuthorBelowText: a line with only a name at the end of an article is its signature.
func TestAuthorBelowText(t *testing.T) {
	for line, want := range map[string]string{"(Ann Lee)": "Ann Lee", "— Ann Lee": "Ann Lee",
		"(Ann Lee/dpa)": "Ann Lee", "(See Part Two below)": "", "New York": ""} {
		got := readArticle(t, "https://wire.example/a/1", `<title>The new bridge opens</title>
			<h1>The new bridge opens</h1>`+story+`<p>`+line+`</p>`)
		if got.Author != want {
			t.Errorf("%s: %q, want %q", line, got.Author, want)
		}
	}
}

// TestAuthorInLanguages: a line below the heading names the author in the page's language.
func TestAuthorInLanguages(t *testing.T) {
	for _, line := range []string{"Words by Ann Lee", "Geschrieben von Ann Lee",
		"Écrit par Ann Lee",
		"Escrito por Ann Lee", "Escribe: Ann Lee", "Scritto da Ann Lee", "Testo di Ann Lee",
		"Geschreven door Ann Lee", "Skrevet av Ann Lee", "Skriven av Ann Lee", "Skrevet af Ann Lee",
		"Kirjoittanut Ann Lee", "Teksti: Ann Lee", "Napisała Ann Lee", "Autorka: Ann Lee",
		"Napsala Ann Lee", "Írta: Ann Lee", "Scris de Ann Lee", "Piše: Ann Lee", "Avtor: Ann Lee",
		"Текст: Анна Ли", "Γράφει η Άννα Λη", "Yazan: Ann Lee", "Ditulis oleh Ann Lee",
		"Penulis: Ann Lee", "Tác giả: Ann Lee"} {
		got := readArticle(t, "https://wire.example/a/1", `<title>The new bridge opens</title>
			<h1>The new bridge opens</h1><p>`+line+`</p>`+story)
		if !slices.Contains([]string{"Ann Lee", "Анна Ли", "Άννα Λη"}, got.Author) {
			t.Errorf("%s: %q", line, got.Author)
		}
	}
	for _, line := range []string{"Oleh karena itu hujan turun.", "Piše se godina.",
		"Words by the river"} {
		got := readArticle(t, "https://wire.example/a/1", `<title>The new bridge opens</title>
			<h1>The new bridge opens</h1><p>`+line+`</p>`+story)
		if got.Author != "" {
			t.Errorf("%s: %q", line, got.Author)
		}
	}
}

// TestDayAsShown: an article's date is found where readers find it, and no other date.
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
		"a label in an element of its own": {before: far, behind: `<p>Seen since 1.1.2020</p>` +
			`<li><p>Mise en ligne</p><p>23 mai 2019</p></li>`, want: "2019-05-23"},
		"a teaser of the article itself": {before: far, behind: `<p>1.1.2020</p><p>2.1.2020</p>` +
			`<a href="/b"><p>9.9.2019</p></a><a href="/a"><p>10.11.2021</p> It opens</a>`,
			want: "2021-11-10"},
		"an abbreviation": {before: `<abbr title="2026-03-05T10:00:00Z">yesterday</abbr>`,
			want: "2026-03-05"},
		"an attribute": {before: `<div data-date="18. März 2020"></div>`,
			behind: `<p>1.1.2020</p><p>2.1.2020</p>`, want: "2020-03-18"},
		"an element with a mark": {before: far, behind: `<meta name="date" content="2022-01-21">` +
			`<p><b itemprop="datePublished" content="2022-01-27">now</b></p>`, want: "2022-01-27"},
		"changed before it was published": {before: `<time datetime="2022-03-09">9.3.</time>` +
			`<meta property="article:published_time" content="2022-11-17T10:33:13Z">` +
			`<meta property="article:modified_time" content="2022-11-17T10:32:18Z">`,
			want: "2022-03-09"},
		"stated as it is shown": {before: `<time datetime="2023-11-06">6.11.</time>` +
			`<meta property="article:published_time" content="2023-11-06T14:25:00Z">` +
			`<script type="application/ld+json">{"@type":"NewsArticle","headline":` +
			`"The new bridge opens","datePublished":"2023-11-03T10:25:00Z"}</script>`,
			want: "2023-11-06"},
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
