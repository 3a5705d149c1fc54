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
	Seen   uint64 `json:"s,omitempty"` // hash of the last item that was told, whole or in part
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
			delete(args, "skip") // the cursor is behind what was skipped
		}
		if at.Bytes > 0 && t.HasCursor() {
			args[operation.LimitArgument] = json.RawMessage("1")
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

var (
	errCursor = fault.Invalid(fault.InvalidCursor, operation.CursorArgument,
		"must be that of the answer before, with otherwise equal arguments")
	errChanged = fault.Invalid(fault.InvalidCursor, operation.CursorArgument,
		"leads to an item that has changed or is gone: begin again without it")
)

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

// reading is an answer that is read, to be told within the budget.
type reading struct {
	*calling
	of   *operation.Tool
	args map[string]json.RawMessage
	at   place
	// again reads the answer anew, with fewer items of its list; nil, without an error, if it is
	// refused. It is set if the operation has a cursor.
	again func(limit int) (json.RawMessage, error)
}

// tell puts the part of an answer that fits into out, beginning at its place. An operation with a
// cursor is asked for as many items as fit, so its own cursor leads on from there. Other lists are
// cut between two items, and the next part begins behind the same item, wherever it is then.
func (r *reading) tell(answer json.RawMessage, out *output) error {
	answer, err := compact(answer)
	if err != nil {
		return err
	}
	if r.at.Items == 0 && r.at.Bytes == 0 && tokensOf(answer) <= maxTokens {
		out.Result = answer
		return nil
	}
	p, err := split(r.of, answer)
	if err != nil {
		return fmt.Errorf("agents: an answer: %w", err)
	}
	if err := r.goBack(&p); err != nil {
		return err
	}
	kept := p.list[r.at.Items:]
	n := p.countFitting(kept)
	if r.at.Bytes > 0 || n == 0 && len(kept) > 0 {
		return r.tellPart(kept, &p, out)
	}
	if r.again != nil && n < len(kept) {
		return r.tellFewer(n, out)
	}
	if at := r.at.Items + n; at < len(p.list) {
		r.goOn(place{Items: at, Seen: nameOf(p.list[at-1])}, out)
	}
	out.Result, err = p.join(kept[:n])
	return err
}

// compact returns JSON without spaces.
func compact(answer json.RawMessage) (json.RawMessage, error) {
	var text bytes.Buffer
	if err := json.Compact(&text, answer); err != nil {
		return nil, fmt.Errorf("agents: an answer: %w", err)
	}
	return text.Bytes(), nil
}

// cursorTokens is what the cursor of a part takes, at most.
const cursorTokens = 512

// countFitting returns how many items fit into an answer beside its other members.
func (p *parts) countFitting(items []json.RawMessage) (n int) {
	left := maxTokens - cursorTokens - tokensOf(p.rest)
	for ; n < len(items); n++ {
		if left -= tokensOf(items[n]) + 1; left < 0 {
			break
		}
	}
	return n
}

// goBack moves the place behind the item that was told last, or to the one that was told in part.
// A list may have changed since.
func (r *reading) goBack(p *parts) error {
	at := &r.at
	switch {
	case at.Bytes > 0:
		if at.Items >= len(p.list) || at.Bytes >= len(p.list[at.Items]) ||
			xxh3.Hash(p.list[at.Items]) != at.Seen {
			return errChanged
		}
	case at.Items > 0:
		before := func(item json.RawMessage) bool { return nameOf(item) == at.Seen }
		if at.Items > len(p.list) || !before(p.list[at.Items-1]) {
			at.Items = slices.IndexFunc(p.list, before) + 1
		}
		if at.Items == 0 || !p.listed {
			return errChanged
		}
	}
	return nil
}

// nameOf hashes what an item of a list is recognized by: its id, if it has one, since its other
// members may change. The id in a row, which is a scraped text, is none.
func nameOf(item json.RawMessage) uint64 {
	var named struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(item, &named) == nil && named.ID != "" {
		return xxh3.HashString(named.ID)
	}
	return xxh3.Hash(item)
}

// tellFewer reads the answer anew, with so many items that it fits.
func (r *reading) tellFewer(n int, out *output) error {
	for {
		answer, err := r.again(n)
		if answer == nil {
			return err
		}
		if answer, err = compact(answer); err != nil {
			return err
		}
		p, err := split(r.of, answer)
		if err != nil {
			return fmt.Errorf("agents: an answer: %w", err)
		}
		if tokensOf(answer) <= maxTokens {
			out.Result = answer
			if next := p.next(); next != "" {
				r.goOn(place{Cursor: next}, out)
			}
			return nil
		}
		// Other items than before come first.
		if n = min(n-1, p.countFitting(p.list)); n == 0 {
			return r.tellPart(p.list, &p, out)
		}
	}
}

// tellPart puts a part of an item's text into out, because the item alone exceeds the budget.
func (r *reading) tellPart(kept []json.RawMessage, p *parts, out *output) error {
	item := kept[0]
	part := item[r.at.Bytes:]
	most := maxTokens / 2 // quotes within it become two characters
	end := len(part)
	for tokensOf(part[:end]) > most {
		end = end * 3 / 4
	}
	for end < len(part) && !utf8.RuneStart(part[end]) {
		end--
	}
	out.Part = string(part[:end])
	next := place{Items: r.at.Items, Bytes: r.at.Bytes + end, Seen: xxh3.Hash(item)}
	switch {
	case next.Bytes < len(item):
		next.Cursor = r.at.Cursor
	case r.again != nil && len(kept) == 1: // the operation's cursor leads on
		next = place{Cursor: p.next()}
	default:
		next = place{Items: r.at.Items + 1, Seen: nameOf(item)}
	}
	if next.Bytes > 0 || next.Cursor != "" || next.Items > 0 && len(kept) > 1 {
		r.goOn(next, out)
	}
	return nil
}

// cached is the argument with which a call that costs answers again what it answered last.
const cached = "useCache"

// goOn says in out that there is more, and how to get it. There is no cursor if another call would
// cost again or change something.
func (r *reading) goOn(next place, out *output) {
	out.Truncated = true
	next.Key, next.Of = r.at.Key, r.at.Of
	switch {
	case r.of.Agents == operation.Reads, next.Key != "", string(r.args[cached]) == "true":
		out.Cursor = next.String()
	case r.of.Input.Properties[cached] != nil:
		out.Reason = "repeat the call with useCache: true and read on by its cursors, at no cost"
	}
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
	if a.rest, err = encode(members); tokensOf(a.rest) > maxTokens/2 {
		return whole, err
	}
	return a, err
}

// next returns the operation's own cursor; "": none.
func (p *parts) next() (cursor string) {
	var members struct {
		NextCursor string `json:"nextCursor"`
	}
	_ = json.Unmarshal(p.rest, &members) // an answer that is a list has none
	return members.NextCursor
}

// join is the inverse of split.
func (p *parts) join(items []json.RawMessage) (json.RawMessage, error) {
	if !p.listed {
		return items[0], nil
	}
	if items == nil {
		items = []json.RawMessage{}
	}
	if p.name == "" {
		return encode(items)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.rest, &members); err != nil {
		return nil, err
	}
	list, err := encode(items)
	if err != nil {
		return nil, err
	}
	members[p.name] = list
	return encode(members)
}
