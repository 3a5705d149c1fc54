package api

import (
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/fault"
)

// ReadMembers reads names of rows' members from the values of a parameter, each once; nil: none.
func ReadMembers(values []string, parameter string, most int) ([]string, error) {
	var members []string
	for _, value := range values {
		names, err := SplitNames(value, parameter)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			switch {
			case name == "" || slices.Contains(members, name):
			case len(members) == most:
				return nil, fault.Invalid(fault.InvalidRequest, parameter,
					"at most %d are allowed", most)
			default:
				members = append(members, name)
			}
		}
	}
	return members, nil
}

// SplitNames splits a parameter's value at its commas. A name in double quotes is exactly what is
// between them, commas too; a quote in it is doubled. Spaces around the quotes do not count. In a
// name that begins otherwise, quotes are plain text.
func SplitNames(value, parameter string) (names []string, err error) {
	for more := true; more; {
		var name string
		if text, quoted := strings.CutPrefix(strings.TrimLeft(value, " "), `"`); quoted {
			if name, value, more, err = cutQuoted(text, parameter); err != nil {
				return nil, err
			}
		} else {
			name, value, more = strings.Cut(value, ",")
		}
		names = append(names, name)
	}
	return names, nil
}

// cutQuoted cuts the text behind an opening quote into the name up to the closing one, and what
// follows the comma behind it.
func cutQuoted(text, parameter string) (name, rest string, more bool, err error) {
	var exact strings.Builder
	for {
		part, behind, closed := strings.Cut(text, `"`)
		exact.WriteString(part)
		if text = strings.TrimPrefix(behind, `"`); closed && text != behind {
			exact.WriteByte('"') // it was doubled
			continue
		}
		text = strings.TrimLeft(text, " ")
		if rest, more = strings.CutPrefix(text, ","); closed && (more || text == "") {
			return exact.String(), rest, more, nil
		}
		return "", "", false, fault.Invalid(fault.InvalidRequest, parameter,
			`a name in quotes must end with one, then a comma or nothing; double the quotes in it`)
	}
}
