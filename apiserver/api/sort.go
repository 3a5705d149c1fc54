package api

import "strings"

// ReadSort reads "field,desc" or "field:desc", ascending by default. A field's name may contain
// both separators. known is false if the text after the last separator is not a direction.
func ReadSort(text string) (field string, descending, known bool) {
	cut := strings.LastIndexAny(text, ",:")
	if cut < 0 {
		return text, false, true
	}
	switch strings.ToLower(text[cut+1:]) {
	case "asc":
		return text[:cut], false, true
	case "desc":
		return text[:cut], true, true
	}
	return text, false, false
}
