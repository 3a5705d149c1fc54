package prose

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestBounds: pages that would cost too much have no article, and the tree is not changed.
func TestBounds(t *testing.T) {
	paragraph := "<p>" + strings.Repeat("The bridge has opened, and many came. ", 20) + "</p>"
	for name, c := range map[string]struct {
		page string
		read bool
	}{
		"an article": {strings.Repeat(paragraph, 5), true},
		"many elements": {strings.Repeat(paragraph, 5) +
			strings.Repeat("<b></b>", maxElements), false},
		"much text": {strings.Repeat(paragraph, maxText/len(paragraph)+99), false},
		"nested":    {strings.Repeat("<div>", maxLevels) + paragraph, false},
		"many names": {strings.Repeat(paragraph, 5) + "<b class='" +
			strings.Repeat("a ", maxNames/2) + "' id=b></b>", false},
		"some names": {strings.Repeat(paragraph, 5) + "<b class='" +
			strings.Repeat("a ", maxNames/2-1) + "' id=b></b>", true},
		"a menu": {"<ul><li><a href=/a>One</a></ul>", false},
	} {
		root, err := html.Parse(strings.NewReader(c.page))
		if err != nil {
			t.Fatal(err)
		}
		var before, after strings.Builder
		if err := html.Render(&before, root); err != nil {
			t.Fatal(err)
		}
		got := Read(root, nil, "https://wire.example/a")
		if err := html.Render(&after, root); err != nil {
			t.Fatal(err)
		}
		if (got.Text != "" && got.Sure) != c.read {
			t.Errorf("%s: %.60q, sure %t", name, got.Text, got.Sure)
		}
		if before.String() != after.String() {
			t.Errorf("%s: the tree is another one", name)
		}
	}
}

// TestTextIsWhole: an article's text is complete, without other text inside or beside it.
func TestTextIsWhole(t *testing.T) {
	const lead = "The mayor has said that the bridge over the river has cost more than any before."
	said := func(of string) string {
		return "<p>" + strings.Repeat("Many came to see "+of+", and danced until night. ", 6) +
			"</p>"
	}
	for name, c := range map[string]struct{ page, with, without string }{
		"a lead over the text": {`<header><h1>It opens</h1><p class="lead">On Monday the bridge over ` +
			`the river was opened by the mayor, and rain did not stop it.</p></header><div>` +
			said("it") + said("her") + said("him") + `</div>`, "On Monday the bridge", ""},
		"columns of a page builder": {`<h1>It opens</h1><div class="entry-content">` +
			`<div class="row"><div class="col">` + said("it") + `</div><div class="col">` +
			said("her") + said("us") + `</div></div><div class="row"><div class="col">` + said("him") +
			said("them") + said("all") + `</div></div></div>`, "see him", ""},
		"what others posted": {`<h1>It opens</h1><article>` + said("it") + said("her") +
			`<blockquote class="twitter-tweet"><p>I was there, it was wet and good</p></blockquote>` +
			said("him") + `</article>`, "see him", "I was there"},
		"a caption": {`<h1>It opens</h1><article>` + said("it") + `<div class="visual"><img src=a.png>` +
			`<div><strong>The mayor, seen from the side</strong></div></div>` + said("her") +
			said("him") + `</article>`, "see her", "from the side"},
		"headings between paragraphs": {`<h1>It opens</h1><div class="entry-content">` +
			`<div class="row"><div>` + said("it") + `<h2>What came then</h2></div><div>` + said("her") +
			said("us") + said("him") + said("them") + said("all") + `</div></div></div>`,
			"What came then", ""},
		"a menu in it": {`<h1>It opens</h1><article>` + said("it") + `<ol><li><a href=/1>Of a hall</a>` +
			`<li><a href=/2>Of a road</a><li><a href=/3>Of a mill</a><li><a href=/4>Of a ford</a></ol>` +
			said("her") + said("him") + `</article>`, "see her", "Of a mill"},
		"a link to another article between paragraphs": {`<h1>It opens</h1><article>` + said("it") +
			`<p>READ MORE: <a href=/1>The mill of the city has closed</a></p>` + said("her") + said("him") +
			`</article>`, "see her", "The mill of the city"},
		"a linked sentence in a paragraph": {`<h1>It opens</h1><article>` + said("it") +
			`<p>It was said: <a href=/1>the mill of the city has closed</a>, and so it was.</p>` +
			said("her") + said("him") + `</article>`, "the mill of the city has closed", ""},
		"two links to other articles": {`<h1>It opens</h1><article>` + said("it") +
			`<div><ul><li><a href=/1>The mill of the city has closed</a></li><li><a href=/2>The ford of
			the city has dried</a></li></ul></div>` + said("her") + said("him") + `</article>`,
			"see her", "The mill of the city"},
		"signs where lines may break": {`<h1>It opens</h1><article>` + said("\u00adit\u200b") +
			said("her") + said("him") + `</article>`, "see it,", "\u00ad"},
		"what the page says of itself": {`<meta name="description" content="` + lead + `"><h1>It opens` +
			`</h1><div><div class="teaser"><p>` + lead + `</p></div></div><article>` + said("it") +
			said("her") + said("him") + `</article>`, lead, ""},
		"a caption in a paragraph": {`<h1>It opens</h1><article>` + said("it") +
			`<p>Abbildung: The bridge from the south</p>` + said("her") + said("him") + `</article>`,
			"see her", "from the south"},
		"comments with the name of the text": {`<h1>It opens</h1><div class="entry-content">` +
			`<div class="row"><div class="col">` + said("it") + `</div><div class="col">` +
			said("her") + said("us") + `</div></div><div class="row"><div class="col">` + said("him") +
			said("them") + said("all") + `</div></div></div><div id="comment-1">` +
			`<div class="comment-content entry-content">` + said("you") + `</div></div>`,
			"see him", "see you"},
		"an author's box": {`<h1>It opens</h1><article>` + said("it") + said("her") + said("him") +
			`<div class="author-box"><p>Ann Lee writes of bridges, and has for years.</p></div>` +
			`</article>`, "see him", "writes of bridges"},
	} {
		root, err := html.Parse(strings.NewReader(c.page))
		if err != nil {
			t.Fatal(err)
		}
		var heading *html.Node
		for n := range root.Descendants() {
			if n.Data == "h1" {
				heading = n
			}
		}
		got := Read(root, heading, "https://wire.example/a", lead)
		if !strings.Contains(got.Text, c.with) {
			t.Errorf("%s: no %q in %q", name, c.with, got.Text)
		}
		if c.without != "" && strings.Contains(got.Text, c.without) {
			t.Errorf("%s: %q in %q", name, c.without, got.Text)
		}
	}
}
