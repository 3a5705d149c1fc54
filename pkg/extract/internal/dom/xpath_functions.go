package dom

import (
	"math"
	"strings"
	"unicode/utf8"
)

// function describes the arguments and the result of a call.
type function struct {
	least, most int // arguments
	kind        kind
	nodes       bool // the argument must be nodes
	call        func(v *evaluation, args []*expression, f focus) any
}

// functions are those of XPath 1.0, and common ones of later versions whose result is no larger
// than their arguments.
var functions = map[string]function{
	"boolean": {1, 1, isTruth, false,
		func(v *evaluation, args []*expression, f focus) any { return v.truth(args[0], f) }},
	"ceiling": {1, 1, isNumber, false, ofNumber(math.Ceil)},
	"concat": {2, 1 << 10, isText, false,
		ofTexts(func(texts []string) any { return strings.Join(texts, "") })},
	"contains": {2, 2, isTruth, false,
		ofTexts(func(texts []string) any { return strings.Contains(texts[0], texts[1]) })},
	"count": {1, 1, isNumber, true,
		func(v *evaluation, args []*expression,
			f focus) any {
			return float64(v.count(args[0], f))
		}},
	"ends-with": {2, 2, isTruth, false,
		ofTexts(func(texts []string) any { return strings.HasSuffix(texts[0], texts[1]) })},
	"false": {0, 0, isTruth, false,
		func(*evaluation, []*expression, focus) any { return false }},
	"floor": {1, 1, isNumber, false, ofNumber(math.Floor)},
	"last": {0, 0, isNumber, false,
		func(_ *evaluation, _ []*expression, f focus) any { return float64(f.all) }},
	"local-name": {0, 1, isText, true,
		ofName(func(name string) any { return name[strings.IndexByte(name, ':')+1:] })},
	"lower-case": {1, 1, isText, false,
		ofTexts(func(texts []string) any { return strings.ToLower(texts[0]) })},
	"name":          {0, 1, isText, true, ofName(func(name string) any { return name })},
	"namespace-uri": {0, 1, isText, true, ofName(func(string) any { return "" })},
	"normalize-space": {0, 1, isText, false, ofTexts(func(texts []string) any {
		return strings.Join(strings.FieldsFunc(texts[0],
			func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }), " ")
	})},
	"not": {1, 1, isTruth, false,
		func(v *evaluation, args []*expression, f focus) any { return !v.truth(args[0], f) }},
	"number": {0, 1, isNumber, false, callNumber},
	"position": {0, 0, isNumber, false,
		func(_ *evaluation, _ []*expression, f focus) any { return float64(f.index) }},
	"round": {1, 1, isNumber, false, ofNumber(round)},
	"starts-with": {2, 2, isTruth, false,
		ofTexts(func(texts []string) any { return strings.HasPrefix(texts[0], texts[1]) })},
	"string": {0, 1, isText, false, ofTexts(func(texts []string) any { return texts[0] })},
	"string-length": {0, 1, isNumber, false, ofTexts(func(texts []string) any {
		return float64(utf8.RuneCountInString(texts[0]))
	})},
	"substring": {2, 3, isText, false, callSubstring},
	"substring-after": {2, 2, isText, false, ofTexts(func(texts []string) any {
		_, after, _ := strings.Cut(texts[0], texts[1])
		return after
	})},
	"substring-before": {2, 2, isText, false, ofTexts(func(texts []string) any {
		before, _, found := strings.Cut(texts[0], texts[1])
		if !found {
			return ""
		}
		return before
	})},
	"sum": {1, 1, isNumber, true, callSum},
	"translate": {3, 3, isText, false,
		ofTexts(func(texts []string) any { return translate(texts[0], texts[1], texts[2]) })},
	"true": {0, 0, isTruth, false,
		func(*evaluation, []*expression, focus) any { return true }},
}

// ofNumber makes a call with one number.
func ofNumber(apply func(float64) float64) func(*evaluation, []*expression, focus) any {
	return func(v *evaluation, args []*expression,
		f focus) any {
		return apply(v.number(args[0], f))
	}
}

// ofTexts makes a call with texts, by default the node's own. It charges their bytes.
func ofTexts(apply func([]string) any) func(*evaluation, []*expression, focus) any {
	return func(v *evaluation, args []*expression, f focus) any {
		texts, total := make([]string, max(1, len(args))), 0
		if len(args) == 0 {
			texts[0] = v.d.valueAt(f.at)
		}
		for i, arg := range args {
			texts[i] = v.text(arg, f)
		}
		for _, text := range texts {
			total += len(text)
		}
		v.d.spend(total)
		return apply(texts)
	}
}

// ofName makes a call with the name of the argument's first node, or of the current node.
func ofName(apply func(string) any) func(*evaluation, []*expression, focus) any {
	return func(v *evaluation, args []*expression, f focus) any {
		at := []spot{f.at}
		if len(args) > 0 {
			at = v.nodes(args[0], f)
		}
		if len(at) == 0 {
			return ""
		}
		return apply(v.d.nameAt(at[0]))
	}
}

// callNumber makes a number of any value, by default of the node's own.
func callNumber(v *evaluation, args []*expression, f focus) any {
	if len(args) == 0 {
		return readNumber(v.d.valueAt(f.at))
	}
	return v.number(args[0], f)
}

func callSum(v *evaluation, args []*expression, f focus) any {
	sum := 0.0
	for _, p := range v.nodes(args[0], f) {
		sum += readNumber(v.d.valueAt(p))
	}
	return sum
}

func callSubstring(v *evaluation, args []*expression, f focus) any {
	text, length := v.text(args[0], f), math.Inf(1)
	v.d.spend(len(text))
	if len(args) > 2 {
		length = v.number(args[2], f)
	}
	return substring(text, v.number(args[1], f), length)
}

// translate replaces characters of from by those at the same positions of to. The first occurrence
// of a character counts.
func translate(s, from, to string) string {
	others := []rune(to)
	into := map[rune]rune{}
	for i, r := range []rune(from) {
		if _, known := into[r]; known {
			continue
		}
		if into[r] = -1; i < len(others) {
			into[r] = others[i]
		}
	}
	return strings.Map(func(r rune) rune {
		if other, known := into[r]; known {
			return other
		}
		return r
	}, s)
}

// round rounds halves up.
func round(n float64) float64 {
	if n-math.Floor(n) < 0.5 {
		return math.Floor(n)
	}
	return math.Ceil(n)
}

// substring returns the characters at positions, counted from 1, of at least from and less than
// from plus length.
func substring(s string, from, length float64) string {
	from = round(from)
	end := from + round(length)
	first, last, place := len(s), len(s), 0.0
	for i := range s {
		place++
		if first == len(s) && place >= from && place < end {
			first = i
		}
		if first < len(s) && !(place < end) {
			last = i
			break
		}
	}
	return s[first:last]
}
