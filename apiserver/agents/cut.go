package agents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// maxTokens is the approximate size limit of an answer (decision 34).
const maxTokens = 25_000

// tokensOf estimates the number of tokens of a text. Models need one for four characters of English
// or JSON, and about one for each character of other scripts.
func tokensOf(text []byte) int {
	plain, others := 0, 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if text = text[size:]; r < utf8.RuneSelf {
			plain++
		} else {
			others++
		}
	}
	return (plain+3)/4 + others
}

// place is where a cut answer continues: after Items items, and Bytes bytes of the next one. Of is
// a hash of the other arguments.
type place struct {
	Items  int    `json:"n,omitempty"`
	Bytes  int    `json:"b,omitempty"`
	Cursor string `json:"c,omitempty"` // the operation's own cursor
	Key    string `json:"k,omitempty"` // so that a change is not repeated, only its answer
	Of     uint64 `json:"h"`
}

// cutStart is the prefix of our own cursors. Cursors of operations contain no dot.
const cutStart = "cut."

func (p place) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // only plain texts and numbers: Marshal cannot fail
	}
	return cutStart + base64.RawURLEncoding.EncodeToString(text)
}

// takePlace removes a cursor of a cut answer from the arguments and decodes it. Cursors of the
// operations stay there.
func takePlace(t *operation.Tool, args map[string]json.RawMessage) (place, error) {
	var own string
	given := args[operation.CursorArgument]
	if given != nil && json.Unmarshal(given, &own) != nil {
		return place{}, errCursor
	}
	ours := !t.HasCursor()
	text, is := strings.CutPrefix(own, cutStart)
	if is || ours {
		delete(args, operation.CursorArgument)
	}
	at := place{}
	if is {
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(decoded, &at) != nil || at.Items < 0 || at.Bytes < 0 ||
			at.Of != sumOf(args) {
			return at, errCursor
		}
		if at.Cursor != "" {
			quoted, err := json.Marshal(at.Cursor)
			if err != nil {
				return at, errCursor
			}
			args[operation.CursorArgument] = quoted
		}
		return at, nil
	}
	if ours && own != "" {
		return at, errCursor
	}
	at.Cursor = own
	other := maps.Clone(args)
	delete(other, operation.CursorArgument)
	at.Of = sumOf(other)
	return at, nil
}

var errCursor = fault.Invalid(fault.InvalidCursor, operation.CursorArgument,
	"must be that of the answer before, with otherwise equal arguments")

// sumOf hashes the arguments, to recognize them again.
func sumOf(args map[string]json.RawMessage) uint64 {
	h := xxh3.New()
	for _, name := range slices.Sorted(maps.Keys(args)) {
		var value bytes.Buffer
		_ = json.Compact(&value, args[name])                                 // it is valid
		_, _ = fmt.Fprintf(h, "%s %d %s,", name, value.Len(), value.Bytes()) // a hash never fails
	}
	return h.Sum64()
}

// cut puts the part of an answer that fits into out, beginning at a place.
func cut(t *operation.Tool, answer json.RawMessage, at place, out *output) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, answer); err != nil {
		return fmt.Errorf("agents: an answer: %w", err)
	}
	answer = compact.Bytes()
	if at.Items == 0 && at.Bytes == 0 && tokensOf(answer) <= maxTokens {
		out.Result = answer
		return nil
	}
	a, err := split(t, answer)
	if err != nil {
		return fmt.Errorf("agents: an answer: %w", err)
	}
	list, rest := a.list, a.rest
	if at.Items > len(list) || at.Items == len(list) && !a.listed {
		return errCursor
	}
	next, n := at, 0
	kept, left := list[at.Items:], maxTokens-tokensOf(rest)
	for ; n < len(kept) && at.Bytes == 0; n++ {
		if left -= tokensOf(kept[n]) + 1; left < 0 {
			break
		}
	}
	if n == 0 && len(kept) > 0 {
		return cutItem(t, kept, at, out)
	}
	if next.Items, next.Bytes = at.Items+n, 0; next.Items < len(list) {
		out.Truncated, out.Cursor = true, goOn(t, next)
	}
	out.Result, err = a.join(kept[:n], out.Truncated)
	return err
}

// cutItem puts a part of an item's text into out, because the item alone exceeds the budget.
func cutItem(t *operation.Tool, kept []json.RawMessage, at place, out *output) error {
	item := kept[0]
	if at.Bytes >= len(item) {
		return errCursor
	}
	part := item[at.Bytes:]
	most := maxTokens / 2 // quotes within it become two characters
	end := len(part)
	for tokensOf(part[:end]) > most {
		end = end * 3 / 4
	}
	for end < len(part) && !utf8.RuneStart(part[end]) {
		end--
	}
	next := at
	if next.Bytes += end; next.Bytes == len(item) {
		next.Items, next.Bytes = at.Items+1, 0
	}
	out.Part = string(part[:end])
	if next.Bytes > 0 || len(kept) > 1 {
		out.Truncated, out.Cursor = true, goOn(t, next)
	}
	return nil
}

// goOn returns the cursor of the next part. It returns "" if another call would cost again or
// change something.
func goOn(t *operation.Tool, next place) string {
	if t.Agents != operation.Reads && next.Key == "" {
		return ""
	}
	return next.String()
}

// parts are an answer's list and the rest of it. An answer without a list counts as one item.
type parts struct {
	list   []json.RawMessage
	rest   json.RawMessage
	name   string // of the list; "": the answer is the list
	listed bool
}

func split(t *operation.Tool, answer json.RawMessage) (parts, error) {
	whole := parts{list: []json.RawMessage{answer}}
	a := parts{name: t.List, listed: true}
	if !t.Listed {
		return whole, nil
	}
	if t.List == "" {
		err := json.Unmarshal(answer, &a.list)
		return a, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return a, err
	}
	if err := json.Unmarshal(members[t.List], &a.list); err != nil {
		return a, err
	}
	delete(members, t.List)
	var err error
	if a.rest, err = json.Marshal(members); tokensOf(a.rest) > maxTokens/2 {
		return whole, err
	}
	return a, err
}

// join is the inverse of split. If items are left out, it drops the operation's own cursor, which
// would skip them.
func (a *parts) join(items []json.RawMessage, more bool) (json.RawMessage, error) {
	if !a.listed {
		return items[0], nil
	}
	if items == nil {
		items = []json.RawMessage{}
	}
	if a.name == "" {
		return json.Marshal(items)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(a.rest, &members); err != nil {
		return nil, err
	}
	if more {
		delete(members, "nextCursor")
	}
	list, err := json.Marshal(items)
	if err != nil {
		return nil, err
	}
	members[a.name] = list
	return json.Marshal(members)
}
