package extract

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// costlySelectors returns selectors of each language that repeat a part up to a length. Some of
// them are refused.
func costlySelectors(length int) map[string]string {
	fill := func(before, unit, after string) string {
		return before + strings.Repeat(unit, (length-len(before)-len(after))/len(unit)) + after
	}
	nest := func(open, inside, closing string) string {
		depth := (length - len(inside)) / len(open+closing)
		return strings.Repeat(open, depth) + inside + strings.Repeat(closing, depth)
	}
	deep := func(open, inside, closing string) string { // as deep as CSS and JSONPath may be
		rest := fill("", inside, "")[:length-19*len(open+closing)-2]
		return strings.Repeat(open, 19) + rest + "b" + strings.Repeat(closing, 19)
	}
	selectors := map[string]string{}
	for _, selector := range []string{
		fill("", "a ", "b"), fill("", "a>", "b"), fill("", "a+", "b"), fill("", "a~", "b"),
		fill("", "a,", "b"), fill("", "a/**/ ", "b"), fill("", " ", "b"), fill("a", ".b", ""),
		fill("", ".abc-def ", "b"), fill("a", "#b#c", ""), fill("a", "[b]", ""),
		fill("a", "[b*=c]", ""), fill("a", `[b="c" i]`, ""), fill("a", ":not(b)", ""),
		fill("a", ":NTH-CHILD(2n+1)", ""), fill("", "a:NTH-CHILD(2N) ", "b"),
		fill(":is(", "a,", "b)"), fill(":is(", "a ", "b)"), fill("", "a:has(b) ", "b"),
		fill("a", ":lang(b)", ""), fill("a", `\61 `, ""), deep(":not(", "a ", ")"),
		deep(":has(", "a,", ")"), deep(":is(a>", ".b", ")"), fill("", ":not(", "b"),
		fill("a", ":matches(b)", ""), fill("a", ":contains('b')", ""),
		fill("/", "/a", ""), fill("", "//a", ""), fill("//.", "//.", ""),
		fill("//a", "|//a", ""), fill("(//a", "|//a", ")=1"), fill("//a", "[b]", ""),
		fill("//a", "[1]", ""), nest("//a[", "b", "]"), nest("(", "//b", ")"),
		nest("(//a|", "//a", ")"), nest("(//a[", "(//a|//b)=1", "]|//c)=1"),
		fill("//a", " or a", ""), fill("//a[1", "+1", "]"), fill("//a[", "-", "1]"),
		fill("//a[", "//b=1 or ", "c]"), nest("not(//a[", "//a", "])"),
		nest("boolean(//a/b/c[.=", "1", "])"), fill("concat('a'", ",'a'", ")"),
		fill("//b", "=//b", ""), fill("//comment()", "//comment()", ""),
		fill("$", ".a", ""), fill("$", "..a", ""), fill("$[1", ",1", "]"),
		fill("$", "[?@.a]", ""), fill("$[?@.a", "||@.a", "]"), fill("$[?@.a", "==@.a&&@.a", "]"),
		fill("$[?match(@,'a')", "||match(@,'a')", "]"), fill("$[?", "!", "@.a]"),
		fill("$[?", "(", "@.a"), fill("$['", `\u0041`, "']"), fill("$[?@=='", "a", "']"),
	} {
		selectors[selector[:min(12, len(selector))]+"…"+selector[len(selector)/2:][:12]] = selector
	}
	return selectors
}

// allocatedBy returns the bytes that do allocates. Of several runs it takes the least, since the
// runtime may allocate meanwhile.
func allocatedBy(runs int, do func()) uint64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	least := uint64(math.MaxUint64)
	for range runs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// TestCompilingIsLinear: a selector four times as long takes about four times the memory. A slice
// that is copied for each part would take sixteen times as much.
func TestCompilingIsLinear(t *testing.T) {
	const length, most, constant = 2_000, 7, 16 << 10
	short, long := sortedByKey(costlySelectors(length/4)), sortedByKey(costlySelectors(length))
	for i := range short {
		made := func(selector string) uint64 {
			return allocatedBy(3, func() { _, _ = Compile(recipeOf(selector)) })
		}
		if few, many := made(short[i]), made(long[i]); many > most*few+constant {
			t.Errorf("%.30q: %d bytes for %d characters, %d for %d", long[i], few, len(short[i]),
				many, len(long[i]))
		}
	}
}

// sortedByKey returns the values of a map in the order of its keys.
func sortedByKey(values map[string]string) []string {
	var sorted []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		sorted = append(sorted, values[key])
	}
	return sorted
}

// TestRecipesCompileWithinBounds: whatever selectors a recipe is full of, checking it takes little
// memory, and thus little time. Beyond the bounds the field is named.
func TestRecipesCompileWithinBounds(t *testing.T) {
	const most = 80 << 20 // bytes
	repeats := strings.Repeat("a{0,999}", 3)
	selectors := costlySelectors(2_048)
	for _, pattern := range []string{repeats + "z", "(?i)" + strings.Repeat(`[\pL\pN]{9}`, 40),
		strings.Repeat(`(\pL{100}){10}`, 140), "(?i)" + strings.Repeat(`\pL`, 5) + "(?<)",
		"[" + strings.Repeat(`\pL`, 99) + "]", "(?i)[" + strings.Repeat("!-ﷺ", 19) + "]",
		"(?i)[" + strings.Repeat("!-ﷺ", 19) + `]\i`, strings.Repeat("a|", 900)} {
		for _, form := range []string{"p:matches(%)", "p[a#=%]", "p:matches(%)!",
			"$[?match(@,'%')]", "$[?search(@,'%')||match(@,'%')]!"} {
			selectors[form+pattern] = strings.ReplaceAll(form, "%", pattern)
		}
	}
	for _, selector := range selectors {
		for _, n := range []int{70, 500} {
			recipe := model.Recipe{Type: model.SingleProduct}
			for i := range n {
				recipe.Fields = append(recipe.Fields,
					model.Field{Name: fmt.Sprint("f", i), Selector: selector, Kind: model.Text})
			}
			var faults fault.List
			if made := allocatedBy(1, func() { faults = CheckNew(recipe) }); made > most {
				t.Errorf("%.60q: %d fields take %d MB", selector, n, made>>20)
			}
			if n == 500 && len(selector) > 1_000 && (len(faults) == 0 ||
				faults[len(faults)-1].Code != fault.SchemaValidation ||
				!strings.HasPrefix(faults[len(faults)-1].Field, "itemsConfig[")) {
				t.Errorf("%.60q: %d fields: %v", selector, n, faults)
			}
		}
	}
}

// TestSelectorsTogetherAreBounded tries the edge.
func TestSelectorsTogetherAreBounded(t *testing.T) {
	recipe := model.Recipe{Type: model.SingleProduct}
	for i := range 500 {
		recipe.Fields = append(recipe.Fields, model.Field{Name: fmt.Sprint("f", i),
			Selector: "a" + strings.Repeat("ä", 299), Kind: model.Text})
	}
	if faults := CheckNew(recipe); len(faults) > 0 {
		t.Errorf("300 characters for each field: %v", faults)
	}
	recipe.Fields[3].Selector += "a"
	faults := CheckNew(recipe)
	if len(faults) != 1 || faults[0].Field != "itemsConfig[499].selector" ||
		faults[0].Code != fault.SchemaValidation ||
		!strings.Contains(faults[0].Detail, "together") {
		t.Errorf("one character more: %v", faults)
	}
}

// TestNewNamesHideNothing: a name with characters that change the direction of writing passes for
// another one. A new recipe has none; one that was saved before still runs.
func TestNewNamesHideNothing(t *testing.T) {
	for _, kind := range []model.ScraperType{model.SingleProduct, model.ApplicationLDJSON} {
		r := model.Recipe{Type: kind, Fields: []model.Field{
			{Name: "n", Selector: "a", Kind: model.Text},
			{Name: "n\u202e", Selector: "b", Kind: model.Text}}}
		faults := CheckNew(r)
		if len(faults) != 1 || faults[0].Field != "itemsConfig[1].name" ||
			faults[0].Code != fault.SchemaValidation {
			t.Errorf("%s: %v", kind, faults)
		}
		if faults := Validate(r); len(faults) > 0 {
			t.Errorf("saved %s: %v", kind, faults)
		}
	}
}
