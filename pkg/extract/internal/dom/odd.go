package dom

// Oddity is why a page could not be read in one go.
type Oddity uint8

// The reasons. Up to OddReread the page is read once more, by the same parser, but as a whole;
// beyond, x/net/html reads it.
const (
	notOdd     Oddity = iota
	oddMatches        // an element was moved, and first matches with it
	oddRoots          // html or body got attributes that a selector looks at
	oddAlike          // formatting elements may be alike in attributes that were not kept
	lastReread        = oddAlike

	oddFormatting Oddity = iota // the adoption agency over many formatting elements
	oddFoster                   // content of a table that belongs before it
	oddFrames                   // a frameset
	oddForeign                  // HTML in SVG or MathML, and CDATA
	oddTemplate                 // HTML in SVG in a template
	oddEnd                      // markup that the page's end cuts off
	oddBytes                    // NUL
	oddRare                     // PLAINTEXT, IMAGE and raw text that no rule places
	oddLarge                    // too deep, too many parts or attributes, too much work
	oddities
)

// String names what it is in the page, for counting.
func (o Oddity) String() string {
	return [oddities]string{notOdd: "", oddMatches: "matches moved",
		oddRoots: "attributes of a second html or body", oddAlike: "formatting elements alike",
		oddFormatting: "nested formatting around a block", oddFoster: "content before its table",
		oddFrames: "frameset", oddForeign: "HTML in SVG or MathML",
		oddTemplate: "SVG in a template",
		oddEnd:      "cut off", oddBytes: "NUL bytes", oddRare: "rare elements",
		oddLarge: "too large"}[o]
}

// giveUp ends the work on a page, for the first reason of several.
func (b *builder) giveUp(why Oddity) {
	if b.odd == notOdd {
		b.odd = why
	}
}
