package amount

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	textnumber "golang.org/x/text/number"
	"pgregory.net/rapid"
)

// places are languages as written in a country, with their own digits.
var places = strings.Fields(`en en-ZA en-AU en-IN de de-AT de-CH de-LI fr fr-CA fr-CH
	es es-AR es-CL es-MX it it-CH nl nl-BE pt-BR pt-PT sv da nb fi is et lv lt pl cs sk sl hr sr hu
	ro bg mk el tr az ru uk kk ka hy he ar ar-MA ar-EG ar-KW ar-TN fa ur hi mr ne bn ta te gu kn ml pa my km lo th
	vi id ms fil ja zh ko sw af`)

// TestWritten reads amounts as CLDR groups them, with all spellings of their currency. It tries all
// orders, raised cents, direction marks and a minus.
func TestWritten(t *testing.T) {
	names := map[string][]string{}
	for name, s := range spellings {
		if s.code != "" && !s.weak && codes[s.code] && !strings.HasSuffix(name, "-") {
			names[s.code] = append(names[s.code], name)
		}
	}
	for code := range names {
		slices.Sort(names[code])
	}
	known := slices.Sorted(maps.Keys(names))
	rapid.Check(t, func(t *rapid.T) {
		lang := rapid.SampledFrom(places).Draw(t, "lang")
		code := rapid.SampledFrom(known).Draw(t, "code")
		name := rapid.SampledFrom(names[code]).Draw(t, "name")
		units := rapid.Int64Range(0, 1e12).Draw(t, "units")
		scale, _ := currency.Standard.Rounding(currency.MustParseISO(code))
		parts := int64(math.Pow10(scale))
		want := strconv.FormatInt(units/parts, 10)
		if scale > 0 {
			want += fmt.Sprintf(".%0*d", scale, units%parts)
		}
		text := message.NewPrinter(language.MustParse(lang)).Sprint(textnumber.Decimal(
			float64(units)/float64(parts), textnumber.Scale(scale)))
		if scale == 2 && rapid.Bool().Draw(t, "raised") {
			text = withRaised(text, rapid.Bool().Draw(t, "bare"))
		}
		minus := rapid.SampledFrom([]string{"", "", "-", "−", "\u200f-"}).Draw(t, "minus")
		space := rapid.SampledFrom([]string{"", " ", "\u00a0", "\u202f", "\n"}).Draw(t, "space")
		first := rapid.Bool().Draw(t, "first")
		switch {
		case first && rapid.Bool().Draw(t, "inside"):
			text = name + space + minus + text
		case first:
			text = minus + name + space + text
		default:
			text = minus + text + space + name
		}
		text = rapid.SampledFrom([]string{"", "\u200f", "\u202b"}).Draw(t, "mark") + text +
			rapid.SampledFrom([]string{"", "\u200f", " *", " (incl.)", "/m²"}).Draw(t, "tail")
		got, _ := NewReader(lang).Parse(text)
		if got.Amount != want || got.Currency != code || !got.Sole ||
			got.Negative != (minus != "") {
			t.Fatalf("%q in %s is read as %+v, want %s %s", text, lang, got, want, code)
		}
	})
}

// withRaised raises the last two digits of an amount. If bare, it removes the sign before them.
func withRaised(text string, bare bool) string {
	runes := []rune(text)
	cents := runes[len(runes)-2:]
	whole := runes[:len(runes)-2]
	if bare {
		whole = whole[:len(whole)-1]
	}
	above := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	return string(whole) + string(above[digitOf(cents[0])]) + string(above[digitOf(cents[1])])
}
