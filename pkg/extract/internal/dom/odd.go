package dom

// Oddity is why a page could not be read in one pass.
type Oddity uint8

// The reasons. Up to lastReread, the same parser reads the page again as a whole. After it,
// x/net/html reads the page.
const (
	notOdd     Oddity = iota
	oddMatches        // an element was moved, and first matches may have changed
	oddRoots          // html or body got attributes that a selector examines
	oddAlike          // formatting elements may be equal in attributes that were not kept
	lastReread        = oddAlike

	oddFormatting Oddity = iota // the adoption agency across many formatting elements
	oddFoster                   // table content that belongs before the table
	oddFrames                   // a frameset
	oddForeign                  // HTML in SVG or MathML, and CDATA
	oddTemplate                 // HTML in SVG in a template
	oddEnd                      // markup that the end of the page cuts off
	oddBytes                    // NUL
	oddRare                     // PLAINTEXT, IMAGE and raw text that no rule places
	oddLarge                    // too deep, too many parts or attributes, too much work
	oddities
)

// String names the oddity, for counting.
func (o Oddity) String() string {
	return [oddities]string{notOdd: "", oddMatches: "matches moved",
		oddRoots: "attributes of a second html or body", oddAlike: "formatting elements alike",
		oddFormatting: "nested formatting around a block", oddFoster: "content before its table",
		oddFrames: "frameset", oddForeign: "HTML in SVG or MathML",
		oddTemplate: "SVG in a template",
		oddEnd:      "cut off", oddBytes: "NUL bytes", oddRare: "rare elements",
		oddLarge: "too large"}[o]
}

// giveUp ends the work on a page; the first reason is kept.
func (b *builder) giveUp(why Oddity) {
	if b.odd == notOdd {
		b.odd = why
	}
}
