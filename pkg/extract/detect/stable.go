package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// maxClasses bounds the stable classes kept of one element. Real elements have a few, and each is
// compared with the others.
const maxClasses = 64

// classesOf returns the classes that other pages of the site are likely to share.
func classesOf(n *html.Node) []string {
	var kept []string
	for class := range strings.FieldsSeq(tree.Attr(n, "class")) {
		if isStable(class) && !slices.Contains(kept, class) {
			if kept = append(kept, class); len(kept) == maxClasses {
				break
			}
		}
	}
	return kept
}

// states are class words for an item's current state.
var states = []string{"active", "current", "selected", "first", "last", "odd", "even", "open",
	"closed", "hover", "focus", "visible",
	"hidden", "show", "shown", "lazy", "lazyload", "lazyloaded", "loaded", "loading", "sale",
	"onsale", "instock", "outofstock", "in-stock",
	"out-of-stock", "sold-out", "new", "featured", "sticky", "clearfix", "is-active", "wow",
	"animated", "fade", "in", "collapsed"}

// isStable says whether other pages of the site are likely to share a class or an id. A page may
// have half a million names, so it scans bytes; regular expressions take much longer.
func isStable(name string) bool {
	return len(name) <= 60 && isIdentifier(name) && !isGenerated(name) && !isMixed(name) &&
		!slices.Contains(states, name)
}

// isIdentifier says whether a name can be used in a selector without quoting.
func isIdentifier(name string) bool {
	rest := strings.TrimPrefix(name, "-")
	return rest != "" && rest[0] != '-' && !isDigit(rest[0]) &&
		lead(rest, isSigned) == len(rest)
}

// builders are prefixes of classes that build tools generate.
var builders = [...]string{"css-", "sc-", "jss-", "emotion-", "svelte-", "ember-", "data-v-", "ng-",
	"tw-", "_"}

// isGenerated says whether a build tool made an identifier, or it names a single thing: post-123,
// css-1x2y3z, sc-bdVaJa.
func isGenerated(name string) bool {
	for _, builder := range builders {
		if strings.HasPrefix(name, builder) {
			return true
		}
	}
	digits := 0
	for i := range len(name) {
		if digits++; !isDigit(name[i]) {
			digits = 0
		}
		if digits == 3 {
			return true
		}
	}
	// block__1x2: the part after the last underscore has a digit
	if at := strings.LastIndexByte(name, '_'); at >= 0 {
		tail := name[at+1:]
		if lead(tail, isAlphanumeric) == len(tail) && strings.ContainsAny(tail, "0123456789") {
			return true
		}
	}
	// a1, ab12cd
	letters := lead(name, isLower)
	rest := name[letters:]
	return (letters == 1 || letters == 2) && rest != "" && isDigit(rest[0]) &&
		lead(rest, func(b byte) bool { return isLower(b) || isDigit(b) }) == len(rest)
}

// isMixed says whether a name looks like a hash: capitals within a short word, or a digit between
// letters.
func isMixed(name string) bool {
	for i := 1; i+1 < len(name); i++ {
		if isDigit(name[i]) && isLetter(name[i-1]) && isLetter(name[i+1]) {
			return true
		}
	}
	letters := lead(name, isLower)
	rest := name[letters:]
	return letters >= 1 && letters <= 3 && len(rest) >= 3 && len(rest) <= 6 && !isLower(rest[0]) &&
		lead(rest, isLetter) == len(rest)
}

// lead returns the number of leading bytes for which isOne holds.
func lead(text string, isOne func(byte) bool) int {
	for i := range len(text) {
		if !isOne(text[i]) {
			return i
		}
	}
	return len(text)
}

func isDigit(b byte) bool        { return b >= '0' && b <= '9' }
func isLower(b byte) bool        { return b >= 'a' && b <= 'z' }
func isLetter(b byte) bool       { return isLower(b | 0x20) }
func isAlphanumeric(b byte) bool { return isLetter(b) || isDigit(b) }
func isSigned(b byte) bool       { return isAlphanumeric(b) || b == '-' || b == '_' }
