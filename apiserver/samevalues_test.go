package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
)

// absent stands for a member that is not there.
type absent struct{}

// with copies a JSON value and replaces the value at a path.
func with(of any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	switch part := path[0].(type) {
	case string:
		members, _ := of.(map[string]any)
		made := maps.Clone(members)
		if made == nil {
			made = map[string]any{}
		}
		if made[part] = with(made[part], path[1:], value); made[part] == (absent{}) {
			delete(made, part)
		}
		return made
	case int:
		items := slices.Clone(of.([]any))
		items[part] = with(items[part], path[1:], value)
		return items
	}
	return nil
}

// dotted writes a path as faults do.
func dotted(path []any) string {
	var made strings.Builder
	for _, part := range path {
		if i, isIndex := part.(int); isIndex {
			fmt.Fprintf(&made, "[%d]", i)
			continue
		}
		fmt.Fprintf(&made, ".%s", part)
	}
	return strings.TrimPrefix(made.String(), ".")
}

// plainText writes a value as a parameter.
func plainText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, _ := json.Marshal(value) // the value was JSON
	return string(text)
}

func short(value any) string { return fmt.Sprintf("%.80s", plainText(value)) }

// oddities are values that schemas tend to accept by mistake.
func oddities() []any {
	return []any{nil, "", " ", "a", "_", "_a", "$a", `a"b`, `a\b`, "a\nb", "\ta", "\u0085a",
		"\u0085", "\u00a0", "ü", " a", "a ", "a b", "_ a", "000000000000000000000000", "NO_SUCH",
		true, false, json.Number("1"), json.Number("1.0"), json.Number("1.5"), json.Number("-1"),
		json.Number("0"), []any{}, map[string]any{}}
}

// values are values on both sides of each bound of a schema, and odd ones.
func (h *sameness) values(name string, schema map[string]any) []any {
	list := oddities()
	number := func(keyword string) (int64, bool) {
		n, ok := schema[keyword].(json.Number)
		whole, err := n.Int64()
		return whole, ok && err == nil
	}
	for _, keyword := range []string{"minimum", "maximum"} {
		if n, ok := number(keyword); ok {
			for _, near := range []int64{n - 1, n, n + 1} {
				list = append(list, json.Number(fmt.Sprint(near)))
			}
		}
	}
	for _, keyword := range []string{"minLength", "maxLength"} {
		if n, ok := number(keyword); ok {
			for _, near := range []int64{n - 1, n, n + 1} {
				for _, fill := range []string{"a", "ü"} {
					list = append(list, lengthened(name, fill, int(near)))
				}
			}
		}
	}
	for _, keyword := range []string{"minItems", "maxItems"} {
		// A million items take a minute each time, so only the nightly run tries them.
		if n, ok := number(keyword); ok && (n <= 10_000 || !testing.Short()) {
			for _, near := range []int64{n - 1, n, n + 1} {
				list = append(list, h.items(schema, int(near)))
			}
		}
	}
	if schema["uniqueItems"] == true {
		one := h.items(schema, 1)[0]
		list = append(list, []any{one, one})
	}
	if enum, ok := schema["enum"].([]any); ok {
		list = append(list, enum...)
	}
	if own := meaningful(name, schema); own != nil {
		list = append(list, own)
	}
	return slices.DeleteFunc(list, func(value any) bool { return value == (absent{}) })
}

// items makes n different items of an array.
func (h *sameness) items(schema map[string]any, n int) []any {
	if n < 0 {
		return nil
	}
	of := h.resolve(schema["items"])
	made := make([]any, n)
	enum, _ := of["enum"].([]any)
	for i := range made {
		switch item := h.sample(of); {
		case enum != nil:
			made[i] = enum[i%len(enum)]
		case of["type"] == "string":
			made[i] = fmt.Sprint("https://shop.example/", i)
		default:
			members, _ := item.(map[string]any)
			for name := range members {
				if name == "name" || name == "outputField" {
					members[name] = fmt.Sprint("n", i)
				}
			}
			made[i] = item
		}
	}
	return made
}

// meanings are members whose text has a syntax of its own, each with a valid text. Their schemas
// bound them, but cannot check the syntax.
func meanings() map[string]string {
	return map[string]string{
		"url": "https://shop.example/", "urls": "https://shop.example/",
		"discoveryUrl": "https://shop.example/", "curl": "curl https://shop.example/",
		"selector": "h1", "cursorPath": "$.next", "template": "/{page}",
		"email": "a@shop.example", "filters": `{}`, "sort": "", "cursor": "",
		"schedule": "0 6 * * 1", "scheduleTimezone": "Europe/Paris", "endpointTag": "",
		"content": "", "params": "", "validatePattern": "^a+$", "engine": "", "expression": "/a",
		"id": "", "ticket": "", "groupRef": "", "rowId": "",
		"expiresAt": "2030-01-01T00:00:00Z",
		"to":        "2026-01-31", "from": "2026-01-01", "password": "aB3$aB3$aB3$",
		"newPassword":  "aB3$aB3$aB3$",
		"keepBodyDays": "", // needs a store of bodies
		"plans":        "", // one must be STARTER, and features must be known
		"offered":      "", // depends on the price
		"level":        "", // of a plan, at most 1,000,000
		"historyDays":  "", // 0 or 90 and more; 0 resets it
	}
}

// lengthened makes a text of n characters, which is meaningful if the member needs that.
func lengthened(name, fill string, n int) any {
	base := meanings()[name]
	if name == "curl" {
		base += " --data "
	}
	switch name {
	case "password", "newPassword", "url", "urls", "discoveryUrl", "curl", "template", "selector",
		"validatePattern":
	default:
		base = ""
	}
	if n < len(base) {
		return absent{}
	}
	return base + strings.Repeat(fill, n-len(base))
}

// meaningful is a valid text for the member, or nil if any text is valid.
func meaningful(name string, schema map[string]any) any {
	if text := meanings()[name]; text != "" && schema["type"] == "string" {
		return text
	}
	return nil
}

// isBeyond reports whether a code depends on what no schema knows: what exists, and what the caller
// still may do.
func isBeyond(code fault.Code) bool {
	return strings.HasSuffix(string(code), "not_found") ||
		slices.Contains([]fault.Code{fault.Unavailable, fault.LimitReached, fault.NameTaken,
			fault.Unauthorized, fault.InvalidCursor, fault.SchemaGone,
			fault.IdempotencyReused, fault.PricesChanged, fault.SettingsChanged}, code)
}
