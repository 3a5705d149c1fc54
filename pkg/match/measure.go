package match

import "math"

// dimension is the dimension of a measure.
type dimension uint8

const (
	mass      dimension = iota + 1 // in grams
	volume                         // in millilitres
	length                         // in millimetres
	data                           // in megabytes
	power                          // in watts
	tension                        // in volts
	frequency                      // in megahertz
	charge                         // in milliampere hours
	pixels                         // in megapixels
)

// unit is a unit of measure, as a multiple of its dimension's base unit.
type unit struct {
	of     dimension
	factor float64
	// glued says that it is a unit only directly after its number: apart it is a word.
	glued bool
}

// units maps the names of units in several languages, folded.
var units = map[string]unit{
	"mg": {mass, 0.001, false}, "g": {mass, 1, false}, "gr": {mass, 1, false},
	"gram": {mass, 1, false}, "grams": {mass, 1, false}, "gramm": {mass, 1, false},
	"grammes": {mass, 1, false}, "gramos": {mass, 1, false}, "grammi": {mass, 1, false},
	"kg": {mass, 1000, false}, "kilo": {mass, 1000, false}, "kilogram": {mass, 1000, false},
	"kilogramm": {mass, 1000, false}, "oz": {mass, 28.349523, false},
	"ounce": {mass, 28.349523, false}, "ounces": {mass, 28.349523, false},
	"lb": {mass, 453.59237, false}, "lbs": {mass, 453.59237, false},
	"pound": {mass, 453.59237, false}, "pounds": {mass, 453.59237, false},

	"ml": {volume, 1, false}, "cl": {volume, 10, false}, "dl": {volume, 100, false},
	"l": {volume, 1000, false}, "lt": {volume, 1000, false}, "ltr": {volume, 1000, false},
	"liter": {volume, 1000, false}, "liters": {volume, 1000, false},
	"litre": {volume, 1000, false}, "litres": {volume, 1000, false},
	"litro": {volume, 1000, false}, "litros": {volume, 1000, false},
	"litri": {volume, 1000, false}, "floz": {volume, 29.573530, false},
	"gallon": {volume, 3785.411784, false}, "gal": {volume, 3785.411784, false},

	"mm": {length, 1, false}, "cm": {length, 10, false}, "m": {length, 1000, true},
	"meter": {length, 1000, false}, "meters": {length, 1000, false},
	"metre": {length, 1000, false}, "metres": {length, 1000, false},
	"metro": {length, 1000, false}, "metros": {length, 1000, false},
	"in": {length, 25.4, true}, `"`: {length, 25.4, true}, "inch": {length, 25.4, false},
	"inches": {length, 25.4, false}, "zoll": {length, 25.4, false},
	"pouce": {length, 25.4, false}, "pouces": {length, 25.4, false},
	"pulgada": {length, 25.4, false}, "pulgadas": {length, 25.4, false},
	"pollici": {length, 25.4, false}, "polegadas": {length, 25.4, false},
	"ft": {length, 304.8, false}, "foot": {length, 304.8, false},
	"feet": {length, 304.8, false}, "yd": {length, 914.4, false},

	"kb": {data, 1.0 / 1024, false}, "mb": {data, 1, false}, "gb": {data, 1024, false},
	"tb": {data, 1024 * 1024, false}, "go": {data, 1024, true}, "to": {data, 1024 * 1024, true},
	"megabyte": {data, 1, false}, "gigabyte": {data, 1024, false},
	"terabyte": {data, 1024 * 1024, false}, "gig": {data, 1024, false},

	"w": {power, 1, true}, "watt": {power, 1, false}, "watts": {power, 1, false},
	"kw": {power, 1000, false}, "v": {tension, 1, true}, "volt": {tension, 1, false},
	"volts": {tension, 1, false}, "hz": {frequency, 1e-6, false},
	"khz": {frequency, 1e-3, false}, "mhz": {frequency, 1, false},
	"ghz": {frequency, 1000, false}, "mah": {charge, 1, false}, "ah": {charge, 1000, false},
	"mp": {pixels, 1, false}, "megapixel": {pixels, 1, false},
	"megapixels": {pixels, 1, false}, "mpix": {pixels, 1, false},
}

// A quantity is a measure as one number: the dimension in the upper bits, and a logarithm of the
// value in the lower. Two quantities are the same if they differ by at most 2%.
type quantity uint32

const (
	quantityBits = 28
	perUnit      = 200_000 // steps of a natural logarithm
	sameSteps    = 3_961   // 2%
	zeroAt       = 1 << 27
)

// quantityOf returns false for no measure: nothing, or an impossibly large value.
func quantityOf(of dimension, value float64) (quantity, bool) {
	if !(value > 1e-9 && value < 1e12) {
		return 0, false
	}
	steps := zeroAt + int64(math.Round(math.Log(value)*perUnit))
	return quantity(of)<<quantityBits | quantity(steps), true
}

func (q quantity) of() dimension { return dimension(q >> quantityBits) }

func (q quantity) same(other quantity) bool {
	if q.of() != other.of() {
		return false
	}
	return max(q, other)-min(q, other) <= sameSteps
}

// unitAt returns the unit that follows a number in the runs from i on, and its number of runs.
func unitAt(runs []run, i int) (unit, int) {
	if i >= len(runs) || runs[i].digits {
		return unit{}, 0
	}
	u, known := units[string(runs[i].text)]
	apart := runs[i].before != 0
	gluedNext := i+1 < len(runs) && runs[i+1].before == 0
	switch {
	case string(runs[i].text) == "fl" && i+1 < len(runs) && string(runs[i+1].text) == "oz":
		return units["floz"], 2
	case !known, apart && (u.glued || runs[i].before != ' ' && runs[i].before != '-'):
		return unit{}, 0
	case gluedNext && !(runs[i].text[0] == '"' || times(runs, i+1)):
		return unit{}, 0 // "5g2" is not a weight
	}
	return u, 1
}

// times reports whether a run is the sign between factors and a number follows.
func times(runs []run, i int) bool {
	return i+1 < len(runs) && !runs[i].digits && string(runs[i].text) == "x" && runs[i+1].digits
}

// measured reads a measure in the runs from i on: a number with its unit, or a pack size. used is
// the number of runs that it takes, 0: none.
func (s *sheet) measured(i int) (used int) {
	runs := s.runs
	if !runs[i].digits {
		return s.packed(i)
	}
	if i > 0 && runs[i].before == 0 && !times(runs, i-1) {
		return 0 // part of a code
	}
	if u, n := unitAt(runs, i+1); n > 0 {
		s.add(u, runs[i].value, 1)
		return 1 + n
	}
	if times(runs, i+1) {
		if u, n := unitAt(runs, i+3); n > 0 {
			if u.of == mass || u.of == volume {
				s.add(u, runs[i+2].value, runs[i].value)
			} else {
				s.add(u, runs[i].value, 1)
				s.add(u, runs[i+2].value, 1)
			}
			return 3 + n
		}
	}
	return s.packed(i)
}

// add notes a measure, which a pack contains several times.
func (s *sheet) add(u unit, value, several float64) {
	q, ok := quantityOf(u.of, value*u.factor)
	if !ok || len(s.quantities) >= maxQuantities {
		return
	}
	s.quantities = append(s.quantities, q)
	s.put(token(hashNumber(roundQuantity(q)), isMeasure))
	if several >= 2 && several <= maxPack {
		s.pack = uint16(several)
		if all, ok := quantityOf(u.of, value*several*u.factor); ok {
			s.quantities = append(s.quantities, all)
		}
	}
}

// roundQuantity maps similar measures to the same value, mostly.
func roundQuantity(q quantity) uint64 { return uint64((q + sameSteps/2) / sameSteps) }

// Bounds of measures.
const (
	maxPack       = 10_000
	maxQuantities = 12
)

// packed reads a pack size: "6 pack", "pack of 6", "6er", "lot de 6", "6 stück".
func (s *sheet) packed(i int) (used int) {
	runs := s.runs
	word := func(n int) string {
		if i+n >= len(runs) || runs[i+n].digits {
			return ""
		}
		return string(runs[i+n].text)
	}
	set := func(value float64, used int) int {
		if value != math.Trunc(value) || value < 1 || value > maxPack {
			return 0
		}
		s.pack = uint16(value)
		return used
	}
	if runs[i].digits {
		if i > 0 && runs[i].before == 0 {
			return 0
		}
		next := word(1)
		switch {
		case next == "er" || next == "x" && packWords[word(2)]:
			if packWords[word(2)] {
				return set(runs[i].value, 3)
			}
			return 0
		case packWords[next], countWords[next]:
			return set(runs[i].value, 2)
		}
		return 0
	}
	switch first := runs[i].text; {
	case !packWords[string(first)]:
	case i+1 < len(runs) && runs[i+1].digits && runs[i+1].before != 0 && packCounts[string(first)]:
		return set(runs[i+1].value, 2)
	case ofWords[word(1)] && i+2 < len(runs) && runs[i+2].digits:
		return set(runs[i+2].value, 3)
	}
	return 0
}
