package api

import "strings"

// ReadSort reads "field,desc" or "field:desc", ascending unless told. A field's name may hold both
// signs. It is not known when what follows the last of them is no direction.
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
