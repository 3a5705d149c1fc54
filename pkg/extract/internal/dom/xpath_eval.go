package dom

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// evaluation is the evaluation of one expression on one document.
type evaluation struct {
	d     *Document
	known map[*expression][]spot // results of absolute paths, which are the same everywhere
	told  verdicts
}

// focus is where an expression is evaluated: a node, and its position among the nodes that earlier
// filters have left.
type focus struct {
	at         spot
	index, all int
	again      bool // the filter may be evaluated at this node again, with other positions
}

// moveSteps is the charge for a move. A step takes about as long as one of a CSS selector.
const moveSteps = 10

// spend charges steps and panics with errTooSlow when there are too many.
func (d *Document) spend(steps int) {
	if d.steps -= steps; !d.goesOn() {
		panic(errTooSlow)
	}
}

// eval returns []spot in document order, a string, a float64 or a bool, depending on the
// expression's kind.
func (v *evaluation) eval(e *expression, f focus) any {
	v.d.spend(1)
	switch e.op {
	case "":
		return e.value
	case "/":
		return v.path(e, f)
	case "|":
		return inOrder(append(slices.Clone(v.nodes(e.args[0], f)), v.nodes(e.args[1], f)...))
	case "or":
		return v.part(e.args[0], f) || v.part(e.args[1], f)
	case "and":
		return v.part(e.args[0], f) && v.part(e.args[1], f)
	case "=", "!=", "<", "<=", ">", ">=":
		return v.compare(e.op, v.operand(e.args[0], f), v.operand(e.args[1], f))
	case "negative":
		return -v.number(e.args[0], f)
	case "+":
		return v.number(e.args[0], f) + v.number(e.args[1], f)
	case "-":
		return v.number(e.args[0], f) - v.number(e.args[1], f)
	case "*":
		return v.number(e.args[0], f) * v.number(e.args[1], f)
	case "div":
		return v.number(e.args[0], f) / v.number(e.args[1], f)
	case "mod":
		return math.Mod(v.number(e.args[0], f), v.number(e.args[1], f))
	}
	return e.call(v, e.args, f)
}

func (v *evaluation) nodes(e *expression, f focus) []spot {
	all, _ := v.eval(e, f).([]spot)
	return all
}

func (v *evaluation) number(e *expression, f focus) float64 { return v.asNumber(v.eval(e, f)) }

func (v *evaluation) text(e *expression, f focus) string { return v.asText(v.eval(e, f)) }

// isStep says whether the expression is a relative path of one step.
func (e *expression) isStep() bool {
	return e.op == "/" && len(e.steps) == 1 && !e.absolute && len(e.args) == 0
}

// count returns the number of nodes that an expression gives.
func (v *evaluation) count(e *expression, f focus) int {
	if e.isStep() && !e.steps[0].placed {
		if r := v.reachOf(&e.steps[0]); r != nil {
			return r.count(v, &e.steps[0], f.at)
		}
		defer v.went(&e.steps[0], v.d.steps)
	}
	return len(v.nodes(e, f))
}

// truth only checks whether a path of one step leads to any node.
func (v *evaluation) truth(e *expression, f focus) bool {
	if !e.isStep() || e.steps[0].placed {
		return asTruth(v.eval(e, f))
	}
	s, found := &e.steps[0], false
	if r := v.reachOf(s); r != nil {
		return r.count(v, s, f.at) > 0
	}
	defer v.went(s, v.d.steps)
	told := v.toldOf(s)
	v.d.along(s.axis, f.at, func(p spot) bool {
		found = v.d.meets(s, p) && v.passes(s, told, p)
		return !found
	})
	return found
}

// passes says whether a node passes a step's filters, none of which depends on positions.
func (v *evaluation) passes(s *step, told []verdict, p spot) bool {
	for i, filter := range s.filters {
		var said verdict
		if told != nil {
			said = told[i]
		}
		passed, known := said.about(p)
		if !known {
			passed = v.truth(filter, focus{at: p, index: 1, all: 1})
			said.keep(p, passed)
		}
		if !passed {
			return false
		}
	}
	return true
}

func inOrder(all []spot) []spot {
	if !slices.IsSortedFunc(all, compareSpots) {
		slices.SortFunc(all, compareSpots)
	}
	return slices.Compact(all)
}

func (v *evaluation) path(e *expression, f focus) []spot {
	if known, ok := v.known[e]; ok {
		return known
	}
	from := []spot{f.at}
	switch {
	case e.absolute:
		from[0] = spot{0, -1}
	case len(e.args) > 0:
		from = v.nodes(e.args[0], f)
	}
	for i := range e.steps {
		from = v.step(&e.steps[i], from)
	}
	if e.absolute {
		v.known[e] = from
	}
	return from
}

func (v *evaluation) step(s *step, from []spot) []spot {
	switch {
	case s.axis == "filter":
		found := from
		for _, filter := range s.filters {
			found = v.filter(filter, found, s.meeting())
		}
		return found
	case !s.placed:
		found := inOrder(v.d.alongAll(s, from))
		if len(s.filters) > 0 {
			told := v.toldOf(s)
			found = slices.DeleteFunc(found, func(p spot) bool { return !v.passes(s, told, p) })
		}
		return found
	}
	all, known := v.nested(s, from)
	if known {
		return inOrder(all)
	}
	// For the n-th node alone, later nodes are not needed.
	most := math.Inf(1)
	if first := s.filters[0]; first.op == "" && first.kind == isNumber {
		most, _ = first.value.(float64)
	}
	var found, before []spot
	for _, p := range from {
		if r := v.reachOf(s); r != nil {
			if last, ok := r.lastFrom(v, s, p); ok {
				all = append(all, last)
			}
			continue
		}
		budget := v.d.steps
		found = found[:0]
		v.d.along(s.axis, p, func(p spot) bool {
			if v.d.meets(s, p) {
				found = append(found, p)
			}
			return float64(len(found)) < most
		})
		if len(found) > 0 && slices.Equal(found, before) {
			continue // the same nodes in the same positions, already filtered
		}
		before = append(before[:0], found...)
		all = v.filtered(s, found, all)
		v.went(s, budget)
	}
	return inOrder(all)
}

// filtered appends those of found, in axis order, that pass all filters of a step.
func (v *evaluation) filtered(s *step, found, all []spot) []spot {
	for _, filter := range s.filters {
		found = v.filter(filter, found, s.meeting())
	}
	return append(all, found...)
}

// filter returns those of all, in axis order, that pass. again says that the filter may be
// evaluated at the same nodes again.
func (v *evaluation) filter(filter *expression, all []spot, again bool) []spot {
	passed := make([]spot, 0, min(len(all), 4))
	var told verdict
	if again {
		told = v.told.of(filter, len(v.d.xpath.nodes))
	}
	for i, p := range all {
		passes, known := told.about(p)
		if f := (focus{p, i + 1, len(all), again}); !known {
			passes = filter.kind == isNumber && v.operand(filter, f) == float64(i+1) ||
				filter.kind != isNumber && v.truth(filter, f)
			told.keep(p, passes)
		}
		if passes {
			passed = append(passed, p)
		}
	}
	return passed
}

func asTruth(value any) bool {
	switch value := value.(type) {
	case []spot:
		return len(value) > 0
	case string:
		return value != ""
	case float64:
		return value != 0 && !math.IsNaN(value)
	case bool:
		return value
	}
	return false
}

func (v *evaluation) asText(value any) string {
	switch value := value.(type) {
	case []spot:
		if len(value) == 0 {
			return ""
		}
		return v.d.valueAt(value[0])
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	case float64:
		switch {
		case math.IsInf(value, 1):
			return "Infinity"
		case math.IsInf(value, -1):
			return "-Infinity"
		case value == 0:
			return "0" // without the sign
		}
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}

func (v *evaluation) asNumber(value any) float64 {
	switch value := value.(type) {
	case float64:
		return value
	case bool:
		if value {
			return 1
		}
		return 0
	}
	return readNumber(v.asText(value))
}

// readNumber reads digits with a decimal point and an optional minus sign, as XPath does.
func readNumber(s string) float64 {
	s = strings.Trim(s, " \t\r\n")
	digits := strings.TrimPrefix(s, "-")
	if strings.Trim(digits, "0123456789.") != "" || strings.Count(digits, ".") > 1 ||
		digits == "" || digits == "." {
		return math.NaN()
	}
	number, _ := strconv.ParseFloat(s, 64) // infinite if it is too large
	return number
}

// compare compares as XPath does: a set of nodes fits if any of its nodes does.
func (v *evaluation) compare(op string, left, right any) bool {
	a, aNodes := left.([]spot)
	b, bNodes := right.([]spot)
	_, aTruth := left.(bool)
	_, bTruth := right.(bool)
	switch {
	case aTruth && bNodes:
		return v.holds(op, left, len(b) > 0)
	case aNodes && bTruth:
		return v.holds(op, len(a) > 0, right)
	case aNodes && bNodes:
		return v.compareAll(op, a, b)
	case aNodes:
		return slices.ContainsFunc(a,
			func(p spot) bool { return v.holds(op, v.d.valueAt(p), right) })
	case bNodes:
		return slices.ContainsFunc(b,
			func(p spot) bool { return v.holds(op, left, v.d.valueAt(p)) })
	}
	return v.holds(op, left, right)
}

// holds compares two values that are not node sets.
func (v *evaluation) holds(op string, left, right any) bool {
	if op == "=" || op == "!=" {
		_, aTruth := left.(bool)
		_, bTruth := right.(bool)
		_, aNumber := left.(float64)
		_, bNumber := right.(float64)
		var same bool
		switch {
		case aTruth || bTruth:
			same = asTruth(left) == asTruth(right)
		case aNumber || bNumber:
			same = v.asNumber(left) == v.asNumber(right)
		default:
			same = v.asText(left) == v.asText(right)
		}
		return same == (op == "=")
	}
	a, b := v.asNumber(left), v.asNumber(right)
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// compareAll says whether any node of one side fits one of the other, examining each node once.
func (v *evaluation) compareAll(op string, a, b []spot) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	switch op {
	case "=", "!=":
		values := map[string]bool{}
		for _, p := range a {
			values[v.d.valueAt(p)] = true
		}
		return slices.ContainsFunc(b, func(p spot) bool {
			value := v.d.valueAt(p)
			return op == "=" && values[value] || op == "!=" && (len(values) > 1 || !values[value])
		})
	}
	leastA, mostA := v.bounds(a)
	leastB, mostB := v.bounds(b)
	if op[0] == '<' {
		return v.holds(op, leastA, mostB)
	}
	return v.holds(op, mostA, leastB)
}

// bounds returns the least and the largest number of some nodes, NaN if there is none.
func (v *evaluation) bounds(all []spot) (least, most float64) {
	least, most = math.NaN(), math.NaN()
	for _, p := range all {
		n := readNumber(v.d.valueAt(p))
		if !(least <= n) && !math.IsNaN(n) {
			least = n
		}
		if !(most >= n) && !math.IsNaN(n) {
			most = n
		}
	}
	return least, most
}
