// Package profile owns what is known of a run's rows field by field. That is how many have a value,
// of which kinds, the least and the greatest, where the numbers lie, and about how many different
// ones. Sums of some rows merge to those of all, in any order, and have a bounded size. A run is
// judged by them against those before it. It stores nothing.
package profile

import (
	"math"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of sums.
const (
	// MaxFields are summed up; what rows have beyond them is not.
	MaxFields = 512
	// MaxName is how many bytes the name of a field may have that is summed up.
	MaxName = 256
	// heldHashes tell different values of a field apart. Up to so many are counted exactly, more
	// with an error of about 3%.
	heldHashes = 1_024
)

// Kind is what a value is.
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

// String is the kind's name in the API.
func (k Kind) String() string {
	return [...]string{"text", "numericText", "number", "boolean", "object", "array"}[k]
}

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Text, Numeric, Number, Boolean, Object, Array} }

// Field is what is known of one field. A row without it, and one with null, has no value.
type Field struct {
	Name  string
	Kinds [kinds]uint64 // values
	// of the numbers, and the texts that are numbers; 0 without one
	Min, Max, Sum float64
	Length        uint64 // bytes of all texts together

	row     uint64 // that it was last found in
	values  sketch
	buckets buckets
}

// Filled is how many rows have a value.
func (f *Field) Filled() (filled uint64) {
	for _, count := range f.Kinds {
		filled += count
	}
	return filled
}

// Numbers is how many values are numbers, or texts that are.
func (f *Field) Numbers() uint64 { return f.Kinds[Numeric] + f.Kinds[Number] }

// Distinct is how many different values there are; exact: none is missing, else it is an estimate.
// It is never beyond Filled.
func (f *Field) Distinct() (count uint64, exact bool) {
	count, exact = f.values.count()
	return min(count, f.Filled()), exact
}

// Sums are what is known of some rows. The zero value is that of none.
type Sums struct {
	Rows   uint64
	Fields []*Field // in the order in which they were found
	More   bool     // there are fields that are not summed up

	byName map[string]*Field
	next   int // the field that probably comes next
	// spare are fields of before the last Reset, in their order: their room is used again
	spare []*Field
}

// Add adds a row, a JSON object. Members that begin with _ do not count. Of a member that is there
// twice the first one counts.
func (s *Sums) Add(row []byte) {
	s.Rows++
	s.next = 0
	for m := rowstore.MembersOf(row); m.Next(); {
		if m.Value == "null" || strings.HasPrefix(m.Key, "_") {
			continue
		}
		if f := s.field(m.Key); f != nil && f.row != s.Rows {
			f.row = s.Rows
			f.add(m.Value)
		}
	}
}

// few fields are looked for one after the other.
const few = 16

// field is the field of a name; nil: there are too many.
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

// newField is an empty field, the next one.
func (s *Sums) newField(name string) *Field {
	if len(s.Fields) >= len(s.spare) {
		return &Field{Name: strings.Clone(name)}
	}
	f := s.spare[len(s.Fields)]
	if f.Name != name { // else it need not be copied
		f.Name = strings.Clone(name)
	}
	*f = Field{Name: f.Name, values: sketch{hashes: f.values.hashes[:0]},
		buckets: buckets{counts: f.buckets.counts[:0]}}
	return f
}

// Reset forgets all rows. Sums of pages that are like each other take few allocations this way.
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

// add adds a value as it is written in a row.
func (f *Field) add(value string) {
	kind, number := kindOf(value)
	if kind == Text || kind == Numeric {
		f.Length += uint64(len(value) - len(`""`))
	}
	if kind == Numeric || kind == Number {
		f.bucket(number, 1)
		f.addNumbers(1, number, number, number)
	}
	f.Kinds[kind]++
	f.values.add(xxh3.HashString(value))
}

// addNumbers adds so many numbers. It goes before they are counted.
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
		// what is escaped is no number
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

// Merge adds what is known of other rows.
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
		for kind, count := range from.Kinds {
			f.Kinds[kind] += count
		}
		f.values.merge(&from.values)
	}
}

// sketch are the least hashes of values, each once, ascending. All below the bound are there, and
// it says what share of all possible ones that is. So sketches of other bounds merge.
type sketch struct {
	hashes []uint64
	bound  uint64 // 0: none, all hashes are there
}

func (s *sketch) add(hash uint64) {
	if s.bound != 0 && hash >= s.bound {
		return
	}
	at, there := slices.BinarySearch(s.hashes, hash)
	if there {
		return
	}
	s.hashes = slices.Insert(s.hashes, at, hash)
	s.cut(heldHashes)
}

// cut keeps so many hashes.
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
