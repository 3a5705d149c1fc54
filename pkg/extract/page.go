package extract

import (
	"bytes"
	"strings"

	"shoal.dev/shoal/pkg/fault"
)

// mediaType is the media type that the server named, without parameters, in lower case.
func mediaType(p Page) string {
	media, _, _ := strings.Cut(p.ContentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// firstBytes is the body without what may stand before its first character.
func firstBytes(p Page) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(p.Body, []byte("\xef\xbb\xbf")), " \t\r\n\f")
}

// checkHTML refuses what is no HTML page: another media type, or none and a body that does not begin like markup.
func checkHTML(p Page) error {
	switch media := mediaType(p); media {
	case "text/html", "application/xhtml+xml":
		return nil
	case "":
		if body := firstBytes(p); len(body) > 0 && body[0] == '<' && !bytes.HasPrefix(body, []byte("<?xml")) {
			return nil
		}
		return fault.New(fault.PageNotHTML, "the answer has no media type and does not look like HTML")
	default:
		return fault.New(fault.PageNotHTML, "the media type is %.100q", media)
	}
}

// checkJSON refuses what is no JSON body: another media type, or none or plain text and a body that does not begin like
// an object or an array. lines says that each line is a value.
func checkJSON(p Page) (lines bool, err error) {
	media := mediaType(p)
	switch {
	case media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"):
		return false, nil
	case media == "application/x-ndjson" || media == "application/ndjson" || media == "application/jsonl":
		return true, nil
	case media == "" || media == "text/plain":
		if body := firstBytes(p); len(body) > 0 && (body[0] == '{' || body[0] == '[') {
			return false, nil
		}
		return false, fault.New(fault.PageNotJSON, "the answer does not look like JSON")
	}
	return false, fault.New(fault.PageNotJSON, "the media type is %.100q", media)
}
