package terminal

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestEurosAreExact(t *testing.T) {
	for micros, want := range map[int64]string{
		0: "0.00 EUR", 150: "0.00015 EUR", -150: "-0.00015 EUR", 10_000: "0.01 EUR",
		1_000_000:         "1.00 EUR",
		1_234_567_800_001: "1,234,567.800001 EUR", 999_999: "0.999999 EUR", 100_000: "0.10 EUR",
		math.MinInt64: "-9,223,372,036,854.775808 EUR",
	} {
		if got := Euros(micros); got != want {
			t.Errorf("%d: %s, want %s", micros, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64().Draw(t, "micros")
		text := strings.ReplaceAll(strings.TrimSuffix(Euros(micros), " EUR"), ",", "")
		amount, ok := new(big.Rat).SetString(text)
		if !ok || amount.Cmp(big.NewRat(micros, 1_000_000)) != 0 {
			t.Errorf("%d became %s", micros, text)
		}
	})
}

func TestPrintableHoldsNoControls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for _, r := range Printable(text) {
			if !unicode.IsGraphic(r) {
				t.Errorf("%q keeps %U", text, r)
			}
		}
	})
	if got := Printable("a\x1b[2Jb\u009bc\u202ed"); got != "a [2Jb c d" {
		t.Errorf("%q", got)
	}
}
