package synthweb

import (
	"bytes"
	"fmt"
)

// size returns which of PageBytes a page uses.
func (w *Web) size(p page) int {
	return int(w.hash(int(p.host), int(p.n), saltSize) % uint64(len(w.config.PageBytes)))
}

// plainBytes is up to which size filler is only text; beyond it, filler has other parts of pages,
// too.
const plainBytes = 2_000

// filler is about the given size of what surrounds a page's content: text with markup, links,
// tables, cards and scripts. It has about as many tags per byte as real pages. No field selects any
// of it.
func filler(size int) []byte {
	var text bytes.Buffer
	if size <= plainBytes {
		for i := 0; text.Len() < size; i += sentencesEach {
			paragraph(&text, i)
		}
		return text.Bytes()
	}
	blocks := []block{
		{"<div class=\"text\">\n", "</div>\n", 6,
			func(b *bytes.Buffer, i int) { paragraph(b, sentencesEach*i) }},
		{"<ul class=\"menu\">\n", "</ul>\n", 12, menuEntry},
		{"<table class=\"facts\">\n", "</table>\n", 14, fact},
		{"<div class=\"cards\">\n", "</div>\n", 10, card},
		{"<script>\nvar shown = [];\n", "</script>\n", 8, statement},
	}
	for i := 0; text.Len() < size; i++ {
		b := blocks[i%len(blocks)]
		text.WriteString(b.open)
		for j := 0; j < b.pieces && text.Len() < size; j++ {
			b.piece(&text, i*b.pieces+j)
		}
		text.WriteString(b.end)
	}
	return text.Bytes()
}

// block is a part of a page that consists of pieces of one kind.
type block struct {
	open, end string
	pieces    int
	piece     func(*bytes.Buffer, int)
}

// sentencesEach is how many sentences a paragraph has.
const sentencesEach = 4

var sentences = [...]string{
	"Made in small batches by people who <b>use it themselves</b>.",
	"Every part can be replaced, and we keep the parts in stock.",
	"Wipe it with a dry cloth; avoid strong cleaners &amp; direct sun.",
	"It arrives in a plain cardboard box, <em>without plastic</em>.",
	"Our workshop answers questions on weekdays, usually within the hour.",
	"Bring it back within thirty days if it is not what you hoped for.",
}

func paragraph(b *bytes.Buffer, from int) {
	b.WriteString("<p>")
	for i := from; i < from+sentencesEach; i++ {
		b.WriteString(sentences[(i+i/len(sentences))%len(sentences)])
		b.WriteByte(' ')
	}
	b.WriteString("</p>\n")
}

func menuEntry(b *bytes.Buffer, i int) {
	fmt.Fprintf(b, "<li class=\"entry\"><a href=\"/shelf/%d\" title=\"To shelf %d\">%s</a></li>\n",
		i, i, trades[i%len(trades)][0])
}

func fact(b *bytes.Buffer, i int) {
	fmt.Fprintf(b, "<tr><th scope=\"row\">Measure %d</th><td>%d × %d cm</td></tr>\n", i, 10+i%90,
		5+i%40)
}

func card(b *bytes.Buffer, i int) {
	fmt.Fprintf(b, "<div class=\"card\"><a href=\"/see/%d\"><img src=\"/pictures/%d.jpg\" "+
		"alt=\"\" loading=\"lazy\">"+
		"<span class=\"name\">%s %s</span> <span class=\"cost\">%s</span></a></div>\n", i, i,
		makers[i%len(makers)],
		trades[i%len(trades)][1], money(900+10*i))
}

func statement(b *bytes.Buffer, i int) {
	fmt.Fprintf(b, "if (window.innerWidth < %d && shown.length <= %d) { shown.push({id: %d, at: "+
		"\"#card-%d\"}); }\n",
		320+i, i, i, i)
}

// bareItemBytes is roughly the size of a JSON page without its related items.
const bareItemBytes = 300

// relatedItems is about the given size of entries of a JSON array.
func relatedItems(size int) []byte {
	var text bytes.Buffer
	for i := 0; text.Len() < size; i++ {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "{\"id\":%d,\"name\":\"%s %s\",\"cost\":%s,\"tags\":[\"new\",\"shelf "+
			"%d\"],\"left\":%d}", i,
			makers[i%len(makers)], trades[i%len(trades)][1], money(900+10*i), i%12, i%40)
	}
	return text.Bytes()
}
