package contacts

import (
	"encoding/base64"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// Encoded addresses, which a script decodes. The row reports only that there is one, and nothing of
// its contents.

const (
	maxCoded    = 2000 // bytes of an attribute that are examined
	maxLiterals = 20   // literals per script
)

// codedMarks are the beginning of a mailto link in base64, hexadecimal, rot13 and reversed.
var codedMarks = []string{"bWFpbHRvO", "6d61696c746f3a", "znvygb:", ":otliam", ":OTLIAM"}

// isCoded says whether a value holds an address in base64 or reversed. If the address is only a
// part of the value, it must be one of the site's own.
func isCoded(value string, own []string) bool {
	if len(value) < 8 || len(value) > maxCoded {
		return false
	}
	if containsAny(value, codedMarks) || isTurned(value, own) {
		return true
	}
	if strings.Trim(value, "=") == "" || !base64Only.MatchString(value) {
		return false
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	if err != nil {
		return false
	}
	text := strings.TrimPrefix(string(decoded), "mailto:")
	hits := findAddresses(text, own)
	return len(hits) == 1 && hits[0].from == 0 && hits[0].to == len(text) ||
		containsOwn(text, own)
}

var base64Only = regexp.MustCompile(`^[A-Za-z0-9+/]{8,}={0,2}$`)

// isTurned says whether a text has one of the site's own addresses reversed.
func isTurned(text string, own []string) bool {
	for _, domain := range own {
		if domain != "" && strings.Contains(strings.ToLower(text), backwards(domain)+"@") {
			return true
		}
	}
	return false
}

func containsOwn(text string, own []string) bool {
	for _, domain := range own {
		if domain != "" && strings.Contains(strings.ToLower(text), "@"+domain) {
			return true
		}
	}
	return false
}

// literal matches a string in a script that may be base64.
var literal = regexp.MustCompile(`["'` + "`" + `]([A-Za-z0-9+/]{8,400}={0,2})["'` + "`" + `]`)

// joins matches ways in which scripts join two variables with an at sign.
var joins = regexp.MustCompile(`\}@\$\{|concat\( ?["'` + "`" + `]@|["'` + "`" + `]@["'` + "`" + `]\.concat`)

// hidesAddress says whether a short script that puts text into a page holds an address.
func hidesAddress(script string, own []string) bool {
	if joins.MatchString(script) || containsOwn(html.UnescapeString(script), own) ||
		isTurned(script, own) {
		return true
	}
	return holdsCoded(script, own)
}

// holdsCoded says whether a literal of a script is an encoded address.
func holdsCoded(script string, own []string) bool {
	for _, found := range literal.FindAllStringSubmatch(script, maxLiterals) {
		if isCoded(found[1], own) {
			return true
		}
	}
	return containsAny(script, codedMarks)
}

// codes says whether an element holds an encoded address.
func codes(t *html.Token, attrs map[string]string, own []string) bool {
	if t.Data == "joomla-hidden-mail" {
		return true
	}
	for i := range t.Attr {
		switch a := &t.Attr[i]; {
		case strings.HasPrefix(a.Key, "data-"):
			if isCoded(a.Val, own) {
				return true
			}
		case strings.HasPrefix(a.Key, "on") && len(a.Val) < maxLine:
			if holdsCoded(a.Val, own) {
				return true
			}
		}
	}
	href := attrs["href"]
	return len(href) < maxLine && strings.HasPrefix(href, "javascript:") && holdsCoded(href, own)
}

// maxTurned is how much text after a direction mark is examined, in bytes.
const maxTurned = 100

// isTurnedByMark says whether a direction mark displays a reversed address forwards.
func isTurnedByMark(text string, own []string) bool {
	for range maxLiterals {
		_, after, ok := strings.Cut(text, "\u202e")
		if !ok {
			return false
		}
		if isTurned(after[:min(len(after), maxTurned)], own) {
			return true
		}
		text = after
	}
	return false
}
