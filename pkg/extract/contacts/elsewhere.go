package contacts

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What has the form of an address in the midst of something else: who logs in somewhere, a path, a
// package, a call.

// maxAround is how far around an address its surroundings are looked at, in bytes.
const maxAround = 200

// callSchemes stand before names of other services that look like addresses.
var callSchemes = []string{"sip:", "sips:", "xmpp:", "acct:", "im:", "skype:", "matrix:"}

// isElsewhere says whether what stands between two offsets of a text is no address, by what is
// around it: https://user@host, /npm/vue@3.io, root@host:/tmp, sip:100@host.
func isElsewhere(text string, from, to int) bool {
	before := text[alignRune(text, max(0, from-maxAround)):from]
	before = strings.ToLower(before[strings.LastIndexAny(before, " \n\x1f")+1:])
	if at := strings.LastIndex(before, "://"); at >= 0 &&
		!strings.HasSuffix(before[:at], "mailto") &&
		!strings.ContainsAny(before[at+3:], "?#") {
		return true // who logs in, or a path
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

// plainLocal is a local part with what is encoded in it decoded, "" if a program would have to fill
// it in.
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

// isMixed says whether a label of a domain has letters of Latin and of a script that looks like it,
// as browsers do not show.
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

// lookalikes are letters of other scripts that are read as Latin ones.
const lookalikes = "аеорсухіјѕԁһвкмнтАЕОРСУХІЈЅВКМНТαοινρτυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"

// isDisguised says whether the letters right before an address only look as if they belonged to it.
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

// isNumbered says whether a domain begins with a digit or two, as versions and scores do: vue@3.io.
func isNumbered(domain string) bool {
	label, _, _ := strings.Cut(domain, ".")
	return len(label) < 3 && strings.Trim(label, "0123456789") == ""
}
