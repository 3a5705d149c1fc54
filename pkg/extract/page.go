package extract

import (
	"strings"

	"shoal.dev/shoal/pkg/fault"
)

// checkJSON refuses what is no JSON body: another media type, or one that says little of the body,
// as many APIs send, and a body that does not begin like an object or an array. lines says that
// each line is a value.
func checkJSON(p Page) (lines bool, err error) {
	media := p.Media()
	switch {
	case media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"):
		return false, nil
	case media == "application/x-ndjson" || media == "application/ndjson" ||
		media == "application/jsonl":
		return true, nil
	case media == "" || strings.HasPrefix(media, "text/") ||
		strings.HasSuffix(media, "javascript") ||
		strings.HasSuffix(media, "json") || strings.HasSuffix(media, "/octet-stream"):
		if body := p.Start(); len(body) > 0 && (body[0] == '{' || body[0] == '[') {
			return false, nil
		}
		return false, fault.New(fault.PageNotJSON, "the answer does not look like JSON")
	}
	return false, fault.New(fault.PageNotJSON, "the media type is %.100q", media)
}
