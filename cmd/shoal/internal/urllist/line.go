package urllist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
)

// separators may be between the columns of a table. A tab always is.
const separators = ",;|"

// plain reads the trimmed lines of text/uri-list.
type plain struct {
	begun bool
	// separator is between the columns of a table, as its first line shows. "": the list is no
	// table, and a comma may be part of an address.
	separator string
}

// read returns a line's address, or nothing of an empty line or a comment. reason says why it is
// neither. The first line may be a table's header.
func (p *plain) read(line string) (url, reason string) {
	if line == "" || line[0] == '#' {
		return "", ""
	}
	first := !p.begun
	p.begun = true
	if p.separator != "" && strings.Contains(line, p.separator) || hasColumns(line) {
		reason = "has several columns: keep that of the addresses alone"
	} else {
		reason = refuse(line, first)
	}
	if reason == "" {
		return line, ""
	}
	// An address that is bad for another reason says nothing of columns.
	isTable := hasColumns(line) || !strings.Contains(line, "://")
	if at := strings.IndexAny(line, separators); first && isTable && at >= 0 {
		p.separator = line[at : at+1]
	}
	return "", reason
}

// hasColumns says whether a line is one of a table. One address may also hold another one after a
// comma, a semicolon or a space, or a comma and a space later on. But lists have columns far more
// often. Such an address needs ndjson.
func hasColumns(line string) bool {
	for _, sign := range [...]string{"\t", `",`, ",http://", ",https://", ";http://", ";https://",
		" http://", " https://"} {
		if strings.Contains(line, sign) {
			return true
		}
	}
	at := strings.IndexAny(line, separators)
	return at >= 0 && strings.Contains(line[:at], "://") && strings.Contains(line[at:], " ")
}

// ndjson reads a line {"url": …}, or an empty one.
func ndjson(line string) (url, reason string) {
	if line == "" {
		return "", ""
	}
	const malformed = `is no JSON object like {"url": "https://…"}`
	var given struct {
		URL *string `json:"url"`
	}
	tokens := json.NewDecoder(strings.NewReader(line))
	tokens.DisallowUnknownFields()
	if err := tokens.Decode(&given); err != nil {
		if _, name, found := strings.Cut(err.Error(), "unknown field "); found {
			return "", "has a member " + name + " beside url"
		}
		return "", malformed
	}
	if _, err := tokens.Token(); given.URL == nil || *given.URL == "" || !errors.Is(err, io.EOF) {
		return "", malformed
	}
	if reason := refuse(*given.URL, false); reason != "" {
		return "", reason
	}
	return *given.URL, ""
}

// refuse says what is wrong with a line, "" if nothing is.
func refuse(line string, first bool) string {
	scheme, rest, hasColon := strings.Cut(line, ":")
	switch {
	case !utf8.ValidString(line):
		return "is not UTF-8: save the list as UTF-8"
	case strings.ContainsRune(line, '\r'):
		return "is several lines with the ends of old Macs: save the list with those of Unix"
	case strings.ContainsRune(`"'“”‘’«»`, firstRune(line)):
		return "stands in quotes: take them off"
	case first && !strings.ContainsAny(line, "./:"):
		return "is a header, not an address: take it off"
	case !hasColon || !isScheme(scheme) || startsWithDigit(rest):
		if strings.ContainsAny(line, " ,;\t") || !strings.Contains(line, ".") &&
			!strings.HasPrefix(line, "localhost") {
			return "is no address"
		}
		return "has no scheme: is it https://" + strings.TrimPrefix(line, "//") + "?"
	case !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		return fmt.Sprintf("begins with %s: only http:// and https:// can be read", scheme)
	}
	to, err := address.Parse(line)
	switch coded := (*fault.Error)(nil); {
	case errors.As(err, &coded):
		return "cannot be read: " + strings.TrimSuffix(coded.Detail, ".")
	case err != nil:
		return "cannot be read"
	case to.Userinfo:
		return "holds a user name or password"
	}
	return ""
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

// isScheme says whether the text before a colon is a scheme, not a host before its port.
func isScheme(text string) bool {
	if text == "" {
		return false
	}
	for _, c := range []byte(text) {
		if !('a' <= c|0x20 && c|0x20 <= 'z') && !('0' <= c && c <= '9') && c != '+' && c != '-' {
			return false
		}
	}
	return true
}

// startsWithDigit says whether text is a port: in an address no digit follows the scheme.
func startsWithDigit(text string) bool {
	return text != "" && '0' <= text[0] && text[0] <= '9'
}

// Suggest returns the address probably meant by one without a scheme, if there is one.
func Suggest(text string) (string, bool) {
	_, guess, found := strings.Cut(refuse(text, false), "is it ")
	return strings.TrimSuffix(guess, "?"), found
}

// Refuse says what is wrong with one address, "" if nothing is.
func Refuse(text string) string { return refuse(text, false) }
