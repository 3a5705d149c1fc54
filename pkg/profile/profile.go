// Package profile summarizes a run's rows field by field. It tells how many have a value, the kinds
// of values, the least and the greatest, and the distribution of numbers. It also estimates the
// number of distinct values. Sums of some rows merge to those of all, in any order, and have a
// bounded size. They serve to judge a run against earlier ones. It stores nothing.
package profile

import (
	"math"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of sums.
const (
	// MaxFields is the most fields that are summed up; rows may have more.
	MaxFields = 512
	// MaxName is the most bytes in the name of a field that is summed up.
	MaxName = 256
	// heldHashes is the most hashes held of a field's distinct values. Up to it the count is exact,
	// beyond it the error is about 3%.
	heldHashes = 1_024
)

// Kind is the kind of a value.
type Kind uint8

// The kinds.
const (
	Text    Kind = iota
	Numeric      // a text that is a number (filter.ParseNumber)
	Number
	Boolean
	Object
	Array
	kinds
)

// String returns the kind's name in the API.
func (k Kind) String() string {
	return [...]string{"text", "numericText", "number", "boolean", "object", "array"}[k]
}

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Text, Numeric, Number, Boolean, Object, Array} }

// Field is the summary of one field. A row without it, or with null, has no value.
type Field struct {
	Name  string
	Kinds [kinds]uint64 // values
	// of the numbers and the texts that are numbers; 0 if there are none
	Min, Max, Sum float64
	Length        uint64 // bytes of all texts together

	truths  truths
	written string // its key and colon, as rows write them
	row     uint64 // row in which it was last found
	values  sketch
	buckets buckets
}

// Filled returns how many rows have a value.
func (f *Field) Filled() (filled uint64) {
	for _, count := range f.Kinds {
		filled += count
	}
	return filled
}

// Numbers returns how many values are numbers, or texts that are numbers.
func (f *Field) Numbers() uint64 { return f.Kinds[Numeric] + f.Kinds[Number] }

// Distinct returns the number of distinct values, at most Filled. If exact is false, it is an
// estimate.
func (f *Field) Distinct() (count uint64, exact bool) {
	count, exact = f.values.count()
	return min(count, f.Filled()), exact
}

// Sums summarize some rows. The zero value summarizes none.
type Sums struct {
	Rows   uint64
	Fields []*Field // in the order of their first appearance
	More   bool     // some fields are not summed up

	byName map[string]*Field
	next   int // index of the field that probably comes next
	// fields from before the last Reset, in their order, for reuse
	spare []*Field
}

// Add adds a row, a JSON object. Members that begin with _ do not count. If a member occurs twice,
// the first one counts.
func (s *Sums) Add(row []byte) {
	s.Rows++
	s.next = 0
	for m := rowstore.MembersOf(row); ; {
		f := s.nextField(&m)
		if f == nil && !m.Next() {
			return
		}
		if m.Value == "null" || f == nil && model.IsServerKey(m.Key) {
			continue
		}
		if f == nil {
			if f = s.field(m.Key); f != nil && f.row == 0 && f.written != m.Written() {
				f.written = strings.Clone(m.Written())
			}
		}
		if f != nil && f.row != s.Rows {
			f.row = s.Rows
			f.add(m.Value)
		}
	}
}

// nextField moves to the next member and returns its field if it is the one that probably comes
// next. Most rows of a page write the same keys in the same order, so nobody has to parse them.
func (s *Sums) nextField(m *rowstore.Members) *Field {
	if s.next == len(s.Fields) || s.Fields[s.next].written == "" ||
		!m.NextAs(s.Fields[s.next].written) {
		return nil
	}
	s.next++
	return s.Fields[s.next-1]
}

// few fields are searched linearly.
const few = 16

// field returns the field with a name; nil: there are too many fields, or the name is too long.
func (s *Sums) field(name string) *Field {
	if s.next < len(s.Fields) && s.Fields[s.next].Name == name {
		s.next++
		return s.Fields[s.next-1]
	}
	if at := s.find(name); at != nil {
		return at
	}
	if len(s.Fields) == MaxFields || len(name) > MaxName {
		s.More = true
		return nil
	}
	f := s.newField(name)
	s.Fields = append(s.Fields, f)
	s.next = len(s.Fields)
	if s.byName != nil {
		s.byName[f.Name] = f
	} else if len(s.Fields) > few {
		s.byName = map[string]*Field{}
		for _, f := range s.Fields {
			s.byName[f.Name] = f
		}
	}
	return f
}

// newField returns an empty field, to be appended.
func (s *Sums) newField(name string) *Field {
	if len(s.Fields) >= len(s.spare) {
		return &Field{Name: strings.Clone(name)}
	}
	f := s.spare[len(s.Fields)]
	if f.Name != name { // otherwise no copy is needed
		f.Name = strings.Clone(name)
	}
	*f = Field{Name: f.Name, written: f.written, values: sketch{hashes: f.values.hashes[:0]},
		buckets: buckets{counts: f.buckets.counts[:0]}}
	return f
}

// Reset forgets all rows. Reusing Sums for similar pages takes few allocations.
func (s *Sums) Reset() {
	s.spare = s.Fields[:max(len(s.spare), len(s.Fields))]
	s.Fields, s.byName, s.Rows, s.More = s.Fields[:0], nil, 0, false
}

func (s *Sums) find(name string) *Field {
	if s.byName != nil {
		return s.byName[name]
	}
	for i, f := range s.Fields {
		if f.Name == name {
			s.next = i + 1
			return f
		}
	}
	return nil
}

// add adds a value as written in a row.
func (f *Field) add(value string) {
	kind, number := kindOf(value)
	if kind == Text || kind == Numeric {
		f.Length += uint64(len(value) - len(`""`))
	}
	if kind == Numeric || kind == Number {
		f.bucket(number, 1)
		f.addNumbers(1, number, number, number)
	}
	if value == "true" {
		f.truths.count++
	}
	f.Kinds[kind]++
	f.values.add(xxh3.HashString(value))
}

// addNumbers adds count numbers. Call it before they are counted.
func (f *Field) addNumbers(count uint64, least, most, sum float64) {
	if count == 0 {
		return
	}
	if f.Numbers() == 0 {
		f.Min, f.Max = least, most
	}
	f.Min, f.Max, f.Sum = min(f.Min, least), max(f.Max, most), f.Sum+sum
}

func kindOf(value string) (Kind, float64) {
	switch value[0] {
	case '"':
		// a number begins with a sign or a digit, and a text with escapes is none
		if value[1] > '9' {
			return Text, 0
		}
		if number, is := filter.ParseNumber(value[1 : len(value)-1]); is {
			return Numeric, number
		}
		return Text, 0
	case 't', 'f':
		return Boolean, 0
	case '{':
		return Object, 0
	case '[':
		return Array, 0
	}
	number, is := filter.ParseNumber(value)
	if !is { // beyond a float64
		return Number, math.Copysign(math.MaxFloat64, number)
	}
	return Number, number
}

// Merge adds the sums of other rows.
func (s *Sums) Merge(other *Sums) {
	s.Rows += other.Rows
	s.More = s.More || other.More
	s.next = 0
	for _, from := range other.Fields {
		f := s.field(from.Name)
		if f == nil {
			continue
		}
		f.mergeBuckets(from)
		f.addNumbers(from.Numbers(), from.Min, from.Max, from.Sum)
		f.Length += from.Length
		f.truths.merge(from.truths)
		for kind, count := range from.Kinds {
			f.Kinds[kind] += count
		}
		f.values.merge(&from.values)
	}
}

// truths counts the booleans that are true.
type truths struct {
	count uint64
	// unknown says that an older program summed up some booleans without counting the true ones
	unknown bool
}

func (t *truths) merge(from truths) {
	t.count, t.unknown = t.count+from.count, t.unknown || from.unknown
}

// sketch holds the least hashes of values, each once, ascending. It has all hashes below the bound,
// which tells what share of all possible hashes that is. So sketches with different bounds merge.
type sketch struct {
	hashes []uint64
	bound  uint64 // 0: none, all hashes are present
}

func (s *sketch) add(hash uint64) {
	if s.bound != 0 && hash >= s.bound {
		return
	}
	at, there := s.search(hash)
	if there {
		return
	}
	s.hashes = append(s.hashes, 0)
	copy(s.hashes[at+1:], s.hashes[at:])
	s.hashes[at] = hash
	s.cut(heldHashes)
}

// fewHeld hashes are searched from the end. With hashes, which are random, a loop is faster than
// jumps that no processor predicts.
const fewHeld = 32

// search returns where a hash is, or where it belongs.
func (s *sketch) search(hash uint64) (at int, there bool) {
	if at = len(s.hashes); at > fewHeld {
		return slices.BinarySearch(s.hashes, hash)
	}
	for at > 0 && s.hashes[at-1] > hash {
		at--
	}
	return at, at > 0 && s.hashes[at-1] == hash
}

// cut keeps at most most hashes.
func (s *sketch) cut(most int) {
	if len(s.hashes) > most {
		s.bound, s.hashes = s.hashes[most], s.hashes[:most]
	}
}

func (s *sketch) merge(other *sketch) {
	if other.bound != 0 && (s.bound == 0 || other.bound < s.bound) {
		s.bound = other.bound
		at, _ := slices.BinarySearch(s.hashes, s.bound)
		s.hashes = s.hashes[:at]
	}
	for _, hash := range other.hashes {
		s.add(hash)
	}
}

func (s *sketch) count() (count uint64, exact bool) {
	if s.bound == 0 {
		return uint64(len(s.hashes)), true
	}
	share := float64(s.bound) / (1 << 63) / 2
	return uint64(math.Round(float64(len(s.hashes)) / share)), false
}
