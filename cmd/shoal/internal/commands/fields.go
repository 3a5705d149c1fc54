package commands

import (
	"fmt"
	"regexp"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/model"
)

// attributeSuffix matches the '@attr' at the end of a field's selector. It cannot belong to the
// selector: there '@' only occurs inside brackets, which end with ']'.
var attributeSuffix = regexp.MustCompile(`@([A-Za-z_][A-Za-z0-9_:.-]*)$`)

// parseFields reads --field flags. NAME=SELECTOR is the element's text, NAME=SELECTOR@ATTR an
// attribute, NAME=SELECTOR? whether the element exists. The server checks names and selectors.
func parseFields(flags []string) ([]model.Field, error) {
	var fields []model.Field
	for _, text := range flags {
		name, selector, found := strings.Cut(text, "=")
		name, selector = strings.TrimSpace(name), strings.TrimSpace(selector)
		if !found || name == "" || selector == "" {
			return nil, terminal.Usagef("--field %q: want NAME=SELECTOR, NAME=SELECTOR@ATTR or "+
				"NAME=SELECTOR?", text)
		}
		field := model.Field{Name: name, Selector: selector, Kind: model.Text}
		if before, exists := strings.CutSuffix(selector, "?"); exists {
			field.Selector, field.Kind = strings.TrimSpace(before), model.Exists
		}
		if at := attributeSuffix.FindStringSubmatchIndex(field.Selector); at != nil {
			attr := field.Selector[at[2]:at[3]]
			field.Selector = strings.TrimSpace(field.Selector[:at[0]])
			if field.Kind == model.Exists {
				return nil, terminal.Usagef("--field %q: an attribute either is read (@%s) "+
					"or exists (%s)", text, attr,
					fmt.Sprintf("%s=%s[%s]?", name, field.Selector, attr))
			}
			field.Kind, field.Attr = model.Attr, attr
		}
		if field.Selector == "" {
			return nil, terminal.Usagef("--field %q: the selector is empty", text)
		}
		fields = append(fields, field)
	}
	return fields, nil
}
