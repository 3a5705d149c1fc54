package contacts

import (
	"regexp"
	"strconv"
	"strings"
)

// minWidth is the width from which a media query holds, alone or on a screen.
var minWidth = regexp.MustCompile(`^(?:(?:only )?screen and ?)?\(min-width: ?([0-9]{1,4})px\)$`)

// desktop is the width of an ordinary screen, in pixels.
const desktop = 1280

// isDesktop says whether what is told of media holds on an ordinary screen, whatever else it holds
// on.
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
