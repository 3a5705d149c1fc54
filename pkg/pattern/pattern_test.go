package pattern_test

import (
	"context"
	"errors"
	"regexp"
	"regexp/syntax"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/pattern"
)

const most = 512

func compile(t testing.TB, source string) *pattern.Pattern {
	t.Helper()
	p, err := pattern.Compile(source, most)
	if err != nil {
		t.Fatalf("%.60q: %v", source, err)
	}
	return p
}

// attacks are patterns of up to 512 characters that Go's regexp compiles into thousands of
// instructions, or tens of megabytes.
var attacks = map[string]string{
	"repetitions":  strings.Repeat("a{0,999}", 62) + "z",
	"classes":      strings.Repeat(`(\pL{100}){10}`, 20),
	"wide classes": strings.Repeat(`\pL`, 170),
	"nested": `((((a{0,10}){0,10}){0,10}b{900}){0,1}c{0,999}){1}` +
		strings.Repeat("d{999}", 20),
	"fold":              "(?i)" + strings.Repeat(`[\pL\pN]{9}`, 40),
	"many tables":       `(?i)[` + strings.Repeat(`\pL`, 168) + `]`,
	"many other tables": `[` + strings.Repeat(`\P{Lu}`, 70) + `]`,
	"wide ranges":       `(?i)[` + strings.Repeat("B-\U0001E942", 60) + `]`,
	"behind an escape":  `(?i)[\x{1E942}B-\x{1E941}\x{1E942}B-\x{1E941}]`,
	"no escape":         `(?i)[\\x{1E942}-\x{1E941}]`,
	"one wide range":    `(?i)[B-\x{1E942}]`,
	"wide by number":    `(?s-i)(?i:[` + strings.Repeat(`B-\x{1E942}`, 40) + `])`,
	"groups":            strings.Repeat(`(a{0,99})`, 50),
	"empty repetitions": strings.Repeat(`(?:){1000}`, 50),
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	for name, source := range attacks {
		if _, err := regexp.Compile(source); err != nil {
			t.Errorf("%s: no pattern at all: %v", name, err)
		}
		if _, err := pattern.Compile(source, most); !errors.Is(err, pattern.ErrTooLarge) {
			t.Errorf("%s: %v, want that it is too large", name, err)
		}
		tree, err := pattern.Parse(source, syntax.Perl)
		if err == nil {
			_, err = tree.Compile()
		}
		if !errors.Is(err, pattern.ErrTooLarge) {
			t.Errorf("%s, parsed before: %v, want that it is too large", name, err)
		}
	}
	if _, err := pattern.Compile(strings.Repeat("ä", most), most); err != nil {
		t.Errorf("%d characters: %v", most, err)
	}
	if _, err := pattern.Compile(strings.Repeat("ä", most+1), most); err == nil {
		t.Errorf("%d characters are a pattern", most+1)
	}
	if _, err := pattern.Compile(`(`, most); err == nil {
		t.Error("( is a pattern")
	}
}

func TestWhatIsUsualIsTaken(t *testing.T) {
	for _, source := range []string{``, `^[A-Za-z0-9._=+/~-]{1,300}$`, `\d+[.,]\d{2}`,
		`(?i)price.*?([\d,.]+)\s*(EUR|USD|€)`,
		`^\s*(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})\s*$`,
		`[\pL\pN]+`, `.{0,999}`, `(?i)[а-яё]+ [А-Яа-я]`, `(?i)[一-龥]{2,9}`,
		`(?i)[\x{1F300}-\x{1F5FF}\x{1F600}-\x{1F64F}\x{1F680}-\x{1F6FF}\x{1F900}-\x{1F9FF}]`,
		`(?i)(one|two)-\x{1F600}-\x{1F601}`, strings.Repeat(`\p{Nd}\p{Zs}`, 10),
		`"buildId":"([^"]{1,200})"`, `^(https?):\/\/([\w.-]{1,253})(:\d{1,5})?(\/.*)?$`} {
		p := compile(t, source)
		if p.Size() > pattern.MaxTotal/15 {
			t.Errorf("%s has the size %d: fifteen such would be too large together", source,
				p.Size())
		}
	}
}

func TestAllTogetherAreBounded(t *testing.T) {
	var total pattern.Total
	large := compile(t, strings.Repeat("a{0,990}", 3))
	var err error
	n := 0
	for ; err == nil; n++ {
		err = total.Add(large.Size())
	}
	if !errors.Is(err, pattern.ErrTooMany) || (n-1)*large.Size() > pattern.MaxTotal ||
		n*large.Size() <= pattern.MaxTotal {
		t.Errorf("%d patterns of size %d were taken: %v", n-1, large.Size(), err)
	}
}

// TestParsingCounts: patterns that are parsed into little, or refused, count as well. A total of
// them ends before it costs more than patterns that are kept.
func TestParsingCounts(t *testing.T) {
	fill := func(before, unit, after string) string {
		return before + strings.Repeat(unit, (most-len(before)-len(after))/len(unit)) + after
	}
	for source, many := range map[string]int{
		fill("[", `\pL`, "]"):                 10,
		fill("(?i)[", `\PL\p{Lu}`, "]"):       10,
		fill("x", `|\pL`, ""):                 10,
		fill("(?i)[", "!-ﷺ", "]"):             10,
		fill("(?i:[", `\x01-\x{1e000}`, "])"): 10,
		fill("(?i)", `\pL`, "("):              10,
		fill("", "(", ""):                     pattern.MaxTotal / most,
		fill("", "(a{99})", ""):               pattern.MaxTotal / most,
	} {
		var total pattern.Total
		n := 0
		for ; n <= many; n++ {
			if _, err := total.Compile(source, func(source string) (*pattern.Pattern, error) {
				return pattern.Compile(source, most)
			}); errors.Is(err, pattern.ErrTooMany) {
				break
			}
		}
		if n > many {
			t.Errorf("%.20q: %d of them have the size %d", source, n, total.Size())
		}
	}
	for _, source := range []string{`(?i)[a-zà-öø-ÿ]+`, `(?i)[а-яё]+-[а-яё]+`} {
		if size := compile(t, source).Size(); size > 100 {
			t.Errorf("%s has the size %d", source, size)
		}
	}
}

// TestMemoryOfAllTogether checks the memory of a scraper's patterns against the limit behind
// MaxTotal.
func TestMemoryOfAllTogether(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept []*pattern.Pattern
	var total pattern.Total
	for {
		p := compile(t, strings.Repeat("a{0,990}", 3))
		if total.Add(p.Size()) != nil {
			break
		}
		kept = append(kept, p)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if made, held := after.TotalAlloc-before.TotalAlloc,
		after.HeapAlloc-before.HeapAlloc; made > 64<<20 || held > 8<<20 {
		t.Errorf("%d patterns allocate %d kB and hold %d kB", len(kept), made>>10, held>>10)
	}
	runtime.KeepAlive(kept)
}

// TestTheBudgetIsWhatMatchingCosts: steps are proportional to the program and the text, and run
// out.
func TestTheBudgetIsWhatMatchingCosts(t *testing.T) {
	text := strings.Repeat("a", 4096)
	for _, c := range []struct {
		source      string
		least, most int
	}{
		{`\d+`, 4096 * 4, 4097 * 4},
		{strings.Repeat("a{0,999}", 3) + "z", 4096 * 1_450, 4096 * 1_550},
	} {
		p := compile(t, c.source)
		b := pattern.NewBudget(t.Context(), 100_000_000)
		if p.Match(b, text) || b.Err() != nil {
			t.Fatalf("%s: matches, or %v", c.source, b.Err())
		}
		if spent := 100_000_000 - b.Left(); spent < c.least || spent > c.most {
			t.Errorf("%s: %d steps, want %d to %d", c.source, spent, c.least, c.most)
		}
		for _, budget := range []int{0, c.least / 2} {
			b := pattern.NewBudget(t.Context(), budget)
			if p.Match(b, text) || !errors.Is(b.Err(), pattern.ErrExhausted) {
				t.Errorf("%s with %d steps: %v", c.source, budget, b.Err())
			}
			if p.Find(b, "a") != nil || p.Match(b, "") {
				t.Errorf("%s matches when the budget is exhausted", c.source)
			}
		}
	}
}

// TestALoopOfMatchesPaysForEach: `.*z|a` reads the whole rest of a text for each letter.
func TestALoopOfMatchesPaysForEach(t *testing.T) {
	r, err := pattern.NewReplacer(compile(t, `.*z|a`), "b")
	if err != nil {
		t.Fatal(err)
	}
	const n = 2_000
	b := pattern.NewBudget(t.Context(), 100_000_000)
	clean, ok := r.Replace(b, strings.Repeat("a", n), 1<<20)
	if !ok || clean != strings.Repeat("b", n) {
		t.Fatalf("%d bytes, %t, %v", len(clean), ok, b.Err())
	}
	if spent := 100_000_000 - b.Left(); spent < n*n/2*4 {
		t.Errorf("%d steps, want %d and more", spent, n*n/2*4)
	}
	b = pattern.NewBudget(t.Context(), 1_000_000)
	if r.Replace(b, strings.Repeat("a", n), 1<<20); !errors.Is(b.Err(), pattern.ErrExhausted) {
		t.Errorf("with a small budget: %v", b.Err())
	}
	b = pattern.NewBudget(t.Context(), 100_000_000)
	if r.Replace(b, strings.Repeat("a ", n), 1<<20); 100_000_000-b.Left() < n*n/2*4 {
		t.Errorf("%d steps", 100_000_000-b.Left())
	}
}

// leaving is a context that ends after a number of checks.
type leaving struct {
	context.Context
	asked, end int
}

func (l *leaving) Err() error {
	if l.asked++; l.asked > l.end {
		return context.Canceled
	}
	return nil
}

// TestWhoHasGoneIsNotMatchedFor ends the context in the middle of one match, and of a loop of
// matches.
func TestWhoHasGoneIsNotMatchedFor(t *testing.T) {
	const all = 1 << 40
	slow := compile(t, strings.Repeat("a{0,999}", 3)+"z")
	text := strings.Repeat("a", 1<<20) // too costly to be matched at once
	replacer, err := pattern.NewReplacer(compile(t, `.*z|a`), "b")
	if err != nil {
		t.Fatal(err)
	}
	for name, work := range map[string]func(*pattern.Budget){
		"match":   func(b *pattern.Budget) { slow.Match(b, text) },
		"find":    func(b *pattern.Budget) { slow.Find(b, text) },
		"replace": func(b *pattern.Budget) { replacer.Replace(b, text, all) },
	} {
		ctx := &leaving{Context: t.Context(), end: 3}
		b := pattern.NewBudget(ctx, all)
		work(b)
		if !errors.Is(b.Err(), context.Canceled) || ctx.asked != ctx.end+1 {
			t.Errorf("%s: %v after the context was asked %d times", name, b.Err(), ctx.asked)
		}
	}
}

// TestReplaceIsThatOfRegexp compares with the library, whose work cannot be counted.
func TestReplaceIsThatOfRegexp(t *testing.T) {
	pieces := []string{"a", "b", "ä", "^", "$", `\b`, `\B`, "(a)", "(?:b)", "(a|b)", "*", "+?", "?",
		"|", ".", "(?m)", `\A`, `\z`, "(?P<n>b)", "[^a]", " "}
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, "source"),
			"")
		re, err := regexp.Compile(source)
		if err != nil {
			return
		}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ä", "\n", " ",
			"\xff"}), 0, 12).Draw(t, "text"), "")
		replacement := rapid.SampledFrom([]string{"", "-", "<$0>", "$1", "${n}$$"}).Draw(t,
			"replacement")
		p, err := pattern.Compile(source, most)
		if err != nil {
			t.Fatal(err)
		}
		r, err := pattern.NewReplacer(p, replacement)
		if err != nil {
			t.Fatal(err)
		}
		b := pattern.NewBudget(context.Background(), 1_000_000)
		got, ok := r.Replace(b, text, 1_000)
		if want := re.ReplaceAllString(text, replacement); got != want || !ok || b.Err() != nil {
			t.Fatalf("%q in %q by %q: %q (%t, %v), want %q", source, text, replacement, got, ok,
				b.Err(), want)
		}
		if got, want := p.Find(b, text),
			re.FindStringSubmatchIndex(text); !slices.Equal(got, want) ||
			p.Match(b, text) != re.MatchString(text) {
			t.Fatalf("%q in %q: %v, want %v", source, text, got, want)
		}
	})
}

func TestReplaceStopsWhereItsTextIsTooLong(t *testing.T) {
	r, err := pattern.NewReplacer(compile(t, `(a+)`), strings.Repeat("$1", 10))
	if err != nil {
		t.Fatal(err)
	}
	b := pattern.NewBudget(t.Context(), 100_000_000)
	if clean, ok := r.Replace(b, strings.Repeat("a", 1_000), 5_000); ok {
		t.Errorf("%d bytes", len(clean))
	}
}

// FuzzCompile: any pattern is refused or within its bounds, and matches at the stated price.
func FuzzCompile(f *testing.F) {
	for _, source := range attacks {
		f.Add(source, "aaaaaaaa")
	}
	f.Add(`(?i)\bprice\b`, "the price")
	f.Fuzz(func(t *testing.T, source, text string) {
		p, err := pattern.Compile(source, most)
		if err != nil {
			return
		}
		if p.Size() > 2*pattern.MaxSize {
			t.Fatalf("%q has the size %d", source, p.Size())
		}
		b := pattern.NewBudget(t.Context(), 1_000_000)
		if got := p.Match(b, text); b.Err() == nil && got != p.Unpaid(text) {
			t.Fatalf("%q in %q: %t", source, text, got)
		}
	})
}

// BenchmarkWorst measures a step with patterns that keep many instructions busy.
func BenchmarkWorst(b *testing.B) {
	text := strings.Repeat("a", 4096)
	for name, source := range map[string]string{"optional": strings.Repeat("a?", 250) + "z",
		"counted":      strings.Repeat("a{0,999}", 3) + "z",
		"backtracking": strings.Repeat("a*", 150) + "z",
		"alternatives": strings.Repeat("(?:a|b|c|.){0,140}", 4) + "z",
		"groups":       strings.Repeat("(a?)", 70) + "z"} {
		b.Run(name, func(b *testing.B) {
			p := compile(b, source)
			steps := 0
			for b.Loop() {
				budget := pattern.NewBudget(b.Context(), 1<<40)
				p.Find(budget, text)
				steps += 1<<40 - budget.Left()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
		})
	}
}
