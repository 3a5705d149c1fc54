package contacts

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text in the form of an address that is part of something else: a login, a path, a package, a
// call.

// maxAround is how far around an address its surroundings are examined, in bytes.
const maxAround = 200

// callSchemes precede names of other services that look like addresses.
var callSchemes = []string{"sip:", "sips:", "xmpp:", "acct:", "im:", "skype:", "matrix:"}

// isElsewhere says whether the text between two offsets is not an address, judging by its
// surroundings: https://user@host, /npm/vue@3.io, root@host:/tmp, sip:100@host.
func isElsewhere(text string, from, to int) bool {
	before := text[alignRune(text, max(0, from-maxAround)):from]
	before = strings.ToLower(before[strings.LastIndexAny(before, " \n\x1f")+1:])
	if at := strings.LastIndex(before, "://"); at >= 0 &&
		!strings.HasSuffix(before[:at], "mailto") &&
		!strings.ContainsAny(before[at+3:], "?#") {
		return true // a login or a path
	}
	for _, scheme := range callSchemes {
		if before == scheme || strings.HasSuffix(before, scheme) &&
			!isWordByte(before[len(before)-len(scheme)-1]) {
			return true
		}
	}
	if strings.HasSuffix(strings.TrimRight(strings.ToLower(text[max(0, from-16):from]), " <"),
		"message-id:") {
		return true
	}
	after := text[to:min(len(text), to+maxAround)]
	path, ok := strings.CutPrefix(after, ":")
	if !ok {
		return false
	}
	path = path[:len(path)-len(strings.TrimLeft(path, "abcdefghijklmnopqrstuvwxyz0123456789._~/-"))]
	return strings.Contains(path, "/") && !strings.HasPrefix(path, "http") &&
		!strings.HasPrefix(path, "www.")
}

func isWordByte(c byte) bool { return c >= 0x80 || isPart(c) && c != '.' && c != '-' && c != '+' }

// plainLocal percent-decodes a local part. It returns "" for a template that a program would have
// to fill in.
func plainLocal(local string) string {
	if strings.Contains(local, "%") {
		decoded, err := url.PathUnescape(local)
		if err != nil {
			return ""
		}
		local = decoded[strings.LastIndexByte(decoded, ' ')+1:]
	}
	if strings.ContainsAny(local, "%$") {
		return ""
	}
	return local
}

// isMixed says whether a label of a domain mixes Latin letters with similar scripts, which browsers
// do not display.
func isMixed(domain string) bool {
	for label := range strings.SplitSeq(domain, ".") {
		latin, alike := false, false
		for _, r := range label {
			latin = latin || unicode.Is(unicode.Latin, r)
			alike = alike || unicode.In(r, unicode.Cyrillic, unicode.Greek)
		}
		if latin && alike {
			return true
		}
	}
	return false
}

// lookalikes are letters of other scripts that look like Latin ones.
const lookalikes = "аеорсухіјѕԁһвкмнтАЕОРСУХІЈЅВКМНТαοινρτυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"

// isDisguised says whether the letters before an address only look as if they belonged to it.
func isDisguised(before string) bool {
	some := false
	for len(before) > 0 {
		r, size := utf8.DecodeLastRuneInString(before)
		if !unicode.In(r, unicode.Cyrillic, unicode.Greek) {
			break
		}
		if !strings.ContainsRune(lookalikes, r) {
			return false
		}
		some, before = true, before[:len(before)-size]
	}
	return some
}

// isNumbered says whether a domain begins with one or two digits, like a version: vue@3.io.
func isNumbered(domain string) bool {
	label, _, _ := strings.Cut(domain, ".")
	return len(label) < 3 && strings.Trim(label, "0123456789") == ""
}
