package aiconf

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/structured"
)

// blobs is a page's framework data that looks like rows.
type blobs struct {
	// the object that states most of the schema; nil if none states enough
	object *structured.Item
	array  []*structured.Item // the array whose objects state most of it
	shown  map[string]bool    // sums of money visible on the page; nil until needed
}

// minScore is how many properties an object must state to count: a name alone is not enough.
const minScore = 2

func (b *blobs) list() []*structured.Item { return b.array }

// framework searches the page's framework data once.
func (r *reader) framework() *blobs {
	if r.blobs != nil {
		return r.blobs
	}
	r.blobs = &blobs{}
	s := search{words: r.words, own: map[string]int{}, known: map[string]int{},
		seen: make([]int, len(r.fields))}
	for i := range r.fields {
		s.own[r.fields[i].normal] = i
	}
	s.fields = r.fields
	for _, blob := range r.data.Framework {
		if j, err := structured.ParseJSON(blob.JSON); err == nil {
			s.visit(j)
		}
	}
	least := min(minScore, len(r.fields))
	if s.best != nil && s.most >= least {
		r.blobs.object = s.best.Item()
	}
	if s.bestArray != nil {
		for i := range s.bestArray.Members {
			if m := &s.bestArray.Members[i].Value; m.Kind == structured.Object &&
				s.score(m) >= least && len(r.blobs.array) < maxElements {
				r.blobs.array = append(r.blobs.array, m.Item())
			}
		}
	}
	return r.blobs
}

// search finds the object and the array that state most of the schema.
type search struct {
	words     lexicon
	fields    []field
	own       map[string]int // fields by normal name
	known     map[string]int // field by key, -1 for keys without one
	seen      []int          // by field, the turn that last counted it
	turn      int
	best      *structured.JSON
	most      int
	bestArray *structured.JSON
	mostArray int
}

// visit examines a value and everything in it.
func (s *search) visit(j *structured.JSON) {
	switch j.Kind {
	case structured.Object:
		if score := s.score(j); score > s.most {
			s.best, s.most = j, score
		}
	case structured.Array:
		sum, objects := 0, 0
		for i := range j.Members {
			if m := &j.Members[i].Value; m.Kind == structured.Object {
				if score := s.score(m); score >= min(minScore, len(s.fields)) {
					sum += score
					objects++
				}
			}
		}
		if objects > 1 && sum > s.mostArray {
			s.bestArray, s.mostArray = j, sum
		}
	}
	for i := range j.Members {
		s.visit(&j.Members[i].Value)
	}
}

// score returns how many fields an object's members match.
func (s *search) score(j *structured.JSON) int {
	s.turn++
	score := 0
	for i := range j.Members {
		m := &j.Members[i]
		if m.Value.Kind == structured.Null || m.Value.Kind == structured.String &&
			m.Value.Text == "" {
			continue
		}
		at, ok := s.known[m.Name]
		if !ok {
			at = s.field(m.Name)
			s.known[m.Name] = at
		}
		if at >= 0 && s.seen[at] != s.turn {
			s.seen[at] = s.turn
			score++
		}
	}
	return score
}

func (s *search) field(key string) int {
	if at, ok := s.own[normal(key)]; ok {
		return at
	}
	if c := s.words.of(key); c != nil {
		for i := range s.fields {
			if s.fields[i].concept == c {
				return i
			}
		}
	}
	return -1
}

// ofFramework returns a field's value in the object found in framework data. An object with another
// name is not the thing.
func (r *reader) ofFramework(f *field, things []*structured.Item) []byte {
	found := r.framework().object
	if found == nil || r.wantsArticle() && r.isOther(found) {
		return nil
	}
	for _, it := range things {
		name, other := normal(it.Text("name")), normal(found.Text("name")+found.Text("title"))
		if name != "" && other != "" && !strings.Contains(name, other) &&
			!strings.Contains(other, name) {
			return nil
		}
	}
	return r.ofItem(f, found)
}

// verified checks the values of a property. A whole-number price in framework data may be in cents,
// so the visible page decides. If the page shows only other sums, the number is dropped.
func (r *reader) verified(f *field, it *structured.Item,
	values []structured.Value) []structured.Value {
	if it.Source != 0 || f.kind != money {
		return values
	}
	var sure []structured.Value
	for _, v := range values {
		if v.Kind != structured.Entity && strings.Trim(v.Text, "0123456789") == "" {
			if v.Text = r.asShown(v.Text); v.Text == "" {
				continue
			}
		}
		sure = append(sure, v)
	}
	return sure
}

var amounts = regexp.MustCompile(`[0-9][0-9.,'’ \x{a0}\x{202f}]{0,15}`)

// asShown returns a whole number as the page shows it: unchanged or as cents; "" if it shows
// neither. If the page shows no number, it is unchanged.
func (r *reader) asShown(whole string) string {
	b := r.framework()
	if b.shown == nil {
		b.shown = map[string]bool{}
		if r.data.Root != nil {
			for n := range r.data.Root.Descendants() {
				if n.Type != html.TextNode || n.Parent == nil || n.Parent.Data == "script" ||
					n.Parent.Data == "style" {
					continue
				}
				for _, amount := range amounts.FindAllString(n.Data, -1) {
					if sum := number(strings.TrimSpace(amount), money, r.amounts(false),
						false); sum != "" {
						b.shown[strings.TrimSuffix(sum, ".00")] = true
					}
				}
			}
		}
	}
	if len(whole) > 2 {
		if cents := whole[:len(whole)-2] + "." +
			whole[len(whole)-2:]; b.shown[strings.TrimSuffix(cents, ".00")] {
			return cents
		}
	}
	if b.shown[whole] || len(b.shown) == 0 {
		return whole
	}
	return ""
}
