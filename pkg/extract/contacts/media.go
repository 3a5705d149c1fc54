package contacts

import (
	"regexp"
	"strconv"
	"strings"
)

// minWidth matches a media query on the minimum width, alone or with screen.
var minWidth = regexp.MustCompile(`^(?:(?:only )?screen and ?)?\(min-width: ?([0-9]{1,4})px\)$`)

// desktop is the width of an ordinary screen, in pixels.
const desktop = 1280

// isDesktop says whether a media rule applies on an ordinary screen, whether or not it also applies
// elsewhere.
func isDesktop(prelude string) bool {
	media, ok := strings.CutPrefix(prelude, "@media")
	if !ok {
		return false
	}
	for query := range strings.SplitSeq(media, ",") {
		query = strings.TrimSpace(query)
		if query == "screen" || query == "only screen" || query == "all" {
			return true
		}
		if found := minWidth.FindStringSubmatch(query); found != nil {
			if width, err := strconv.Atoi(found[1]); err == nil && width <= desktop {
				return true
			}
		}
	}
	return false
}
