package amount

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	textnumber "golang.org/x/text/number"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct{ amount, currency string }{
		"1.299,00 €": {"1299.00", "EUR"}, "$1,299.00": {"1299.00", ""}, "€ 12,99": {"12.99", "EUR"},
		"CHF 12.–": {"12", "CHF"}, "12,- Kč": {"12", "CZK"}, "1 299,00 zł": {"1299.00", "PLN"},
		"1\u202f299,00\u00a0€": {"1299.00", "EUR"}, "CHF 1'299.90": {"1299.90", "CHF"},
		"1.299 €":   {"1299", "EUR"},
		"US$ 1,299": {"1299", "USD"}, "0.999 USD": {"0.999", "USD"}, "From £5": {"5", "GBP"},
		"19.99":     {"19.99", ""},
		"1.234.567": {"1234567", ""}, "12.50 EUR/kg": {"12.50", "EUR"}, "R$ 99,9": {"99.9", "BRL"},
		"007":       {"7", ""},
		"£10 - £20": {"10", "GBP"}, "45,990円(税込)": {"45990", "JPY"},
		"45 990 руб.":  {"45990", "RUB"},
		"Rp 1.250.000": {"1250000", "IDR"}, "459,900원": {"459900", "KRW"},
		"€15 inc. EUROPE": {"15", "EUR"}, "1 299 12": {"1299", ""},
	} {
		if got, ok := Parse(text); !ok || got.Amount != want.amount ||
			got.Currency != want.currency {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{"", "12345678901234567890"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// dashed matches an amount with a dash for its cents, which needs no currency to be a price.
var dashed = regexp.MustCompile(`[,:][-–—=]+[ *]*$`)

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{"$12.00": true, "From $12.00": true, "12,99 €": true,
		"Was £5": true, "12.99": false,
		"12 items": false, "Save $5 on orders over $50 today": false, "$5 - $9": false,
		"EUR 5": true, "Pack of 12": false, "价格：3999元": true, "￥3,999": true, "45,990円(税込)": true,
		"12 рубашек": false, "Rs. 1,999": true, "RPM 1200": false,
		"1.299,-": true, "129:-": true, "ab 110,–": true, "1 299,-*": true, "12,- bis 15,-": false,
		"1.-": false, "12 -": false, "1,-2": false, "12:- Uhr": false, "från 129:-": true,
		"Step 1:-": false, "Q1:-": false, "Day 1:--": false} {
		if Is(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// TestFormatted reads amounts as CLDR formats them: with the grouping of a language and the
// decimals of a currency.
func TestFormatted(t *testing.T) {
	languages := []string{"en", "en-IN", "de", "de-CH", "de-AT", "fr", "fr-CH", "es", "es-MX", "it",
		"nl", "pt-BR", "pt-PT", "sv", "da", "nb",
		"fi", "pl", "cs", "hu", "ro", "bg", "el", "tr", "ru", "uk", "he", "ar", "ar-KW", "ar-TN",
		"fa", "hi", "bn", "th", "ja", "zh", "ko", "vi", "id"}
	known := slices.Sorted(maps.Keys(codes))
	rapid.Check(t, func(t *rapid.T) {
		lang, code := rapid.SampledFrom(languages).Draw(t, "lang"),
			rapid.SampledFrom(known).Draw(t, "code")
		units := rapid.Int64Range(0, 1e12).Draw(t, "units")
		scale, _ := currency.Standard.Rounding(currency.MustParseISO(code))
		parts := int64(math.Pow10(scale))
		want := strconv.FormatInt(units/parts, 10)
		if scale > 0 {
			want += fmt.Sprintf(".%0*d", scale, units%parts)
		}
		value := float64(units) / float64(parts) // at most 15 digits: precise enough to be printed
		text := message.NewPrinter(language.MustParse(lang)).Sprint(textnumber.Decimal(value,
			textnumber.Scale(scale)))
		for _, text := range []string{code + "\u00a0" + text, text + " " + code, code + text,
			"ab " + text + " " + code + " *"} {
			got, _ := NewReader(lang).Parse(text)
			if got.Amount != want || got.Currency != code || !got.Sole {
				t.Fatalf("%q in %s is read as %+v, want %s", text, lang, got, want)
			}
		}
	})
}

// TestSpellings: every code is in ISO 4217, and every spelling is found.
func TestSpellings(t *testing.T) {
	for code := range codes {
		if _, err := currency.ParseISO(code); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	for name, s := range spellings {
		if len(name) > maxSpelling || s.code != "" && !IsCode(s.code) && s.code != "BWP" &&
			s.code != "CUC" && s.code != "TMT" && s.code != "TOP" {
			t.Errorf("%q: %+v", name, s)
		}
		if before, _ := spellingBefore(plain(name)); before == nil {
			t.Errorf("%q is not found before an amount", name)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct{ text, lang, want string }{
		{"80 m²", "en", "80"}, {"12 månader", "sv", "12"}, {"12 monate", "de", "12"},
		{"5 m", "de", "5"}, {"2,5 kg", "de", "2.5"},
		{"1.250 kg", "de", "1250"}, {"1.250 kg", "en", "1.250"}, {"1.250 kg", "", ""},
		{"1.250 kg", "en_US", "1.250"},
		{"5 km", "en", "5"}, {"12 bottles", "en", "12"}, {"1.2k", "en", ""},
		{"12 тыс. отзывов", "ru", ""}, {"3万", "ja", ""}, {"5千克", "zh", "5"},
		{"-5,5 °C", "de", "-5.5"}, {"2 x 4", "en", ""}, {"X100", "en", ""},
		{"12.05.2024", "de", ""}, {"१२", "hi", "12"}, {"3 m³", "de", "3"},
		{"10⁶", "en", ""}, {"5¹² kg", "en", ""}, {"2½ kg", "en", ""}, {"10^6 m", "en", ""},
	} {
		if got := NewReader(c.lang).Quantity(c.text, false); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.text, c.lang, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]string{"(12 reviews)": "12", "1.234 Bewertungen": "1234",
		"1 234 avis": "1234", "4,5 (1,234)": "1234",
		"1.2k reviews": "", "none": "", "2万件": ""} {
		if got := Count(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestWithCurrency: a page's currency decides what its texts leave open.
func TestWithCurrency(t *testing.T) {
	for _, c := range []struct{ text, currency, amount, want string }{
		{"12.500", "KWD", "12.500", ""}, {"12.500", "EUR", "12500", ""},
		{"$12", "CAD", "12", "CAD"}, {"$12", "EUR", "12", ""}, {"12.500", "KW", "12500", ""},
	} {
		if got, _ := (Reader{}).WithCurrency(c.currency).Parse(c.text); got.Amount != c.amount ||
			got.Currency != c.want {
			t.Errorf("%q on a page in %s is read as %+v", c.text, c.currency, got)
		}
	}
}

// FuzzParse: an amount is always a JSON number.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1.299,00 €", "$1,299.00", "0", "00.5", "1..2", "’1’",
		"1 000\xff", "١٬٢٣٤٫٥٠ د.إ.", "KWD 12.500", "1€ 99", "12k", "$..75", "5 - 6 kr",
		"10-20K USD", "99 ct - 1,50 €", "1tr2", "5 KD 250 fils", "₹10-15 L", "1_000 $"} {
		f.Add(seed, "de")
	}
	f.Fuzz(func(t *testing.T, text, lang string) {
		for _, r := range []Reader{{}, NewReader(lang), Machine()} {
			p, ok := r.Parse(text)
			if ok && !json.Valid([]byte(p.Amount)) || p.Max != "" && !json.Valid([]byte(p.Max)) {
				t.Errorf("%q gives %+v", text, p)
			}
			for _, whole := range []bool{false, true} {
				if q := r.Quantity(text, whole); q != "" && !json.Valid([]byte(q)) {
					t.Errorf("%q gives the quantity %q", text, q)
				}
			}
		}
		if p, ok := Parse(text); Is(text) && (!ok || !p.Named && !dashed.MatchString(plain(text))) {
			t.Errorf("%q is a price, but is read as %+v", text, p)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		Parse("1.299,00 €")
		Parse("$1,299.00")
		Parse("From CHF 12.90 incl. VAT")
	}
}

func BenchmarkIs(b *testing.B) {
	for b.Loop() {
		Is("1.299,00 €")
		Is("Wireless headphones with case")
		Is("Pack of 12 bottles")
	}
}

// TestFactors: factors are read if they mean one power of ten; otherwise no amount is found.
func TestFactors(t *testing.T) {
	for text, want := range map[string]string{
		"12k": "12000", "$12.5K": "12500", "3 Mio": "3000000", "1.2 million USD": "1200000",
		"2,5 Tsd. €": "2500", "₹3 lakh": "300000",
		"₹ 2.75 crore": "27500000", "2 Cr": "20000000", "Rp 1,5 juta": "1500000",
		"1,234.5 million": "1234500000", "€ .5 Mio.": "500000",
		"12,3456 млн руб": "12345600", "1,23456789 Mio €": "1234567.89", "890 Kč": "890",
		"80 m²": "80", "12 månader": "12", "5 kr": "5",
		"3 Mrd. €": "3000000000", "$1 million to $2 million": "1000000",
		"12 k": "", "5 m": "", "$5m": "", "2 billion": "", "18k gold": "", "1.250 Mio €": "",
		"12,500 million": "", "999999999999 crore": "",
		"3.5万円": "", "5 mil": "", "2k5 €": "2500", "1tr2": "1200000", "1tr250đ": "1250000",
		"500tr": "500000000", "500 tr": "", "129,90 TR": "129.90", "4K60 $199": "199",
		"₹12 L": "1200000", "₹1.5L": "150000", "₹95/L": "95", "₹95 Lux": "95", "12 L": "12",
		"$12 L": "12",
	} {
		if got, ok := Parse(text); got.Amount != want || ok != (want != "") {
			t.Errorf("%q is read as %+v, want %q", text, got, want)
		}
	}
}

// TestFactorsMoveThePoint: a factor only moves the point, never by a wrong power of ten.
func TestFactorsMoveThePoint(t *testing.T) {
	words := slices.Sorted(maps.Keys(powers))
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(words).Draw(t, "word")
		tenths := rapid.Int64Range(1, 9_999).Draw(t, "tenths")
		want := strconv.FormatInt(tenths*int64(math.Pow10(powers[word]-1)), 10)
		text := fmt.Sprintf("%d,%d%s USD", tenths/10, tenths%10, word)
		if got, _ := Parse(text); got.Amount != want || got.Currency != "USD" {
			t.Fatalf("%q is read as %+v, want %s", text, got, want)
		}
	})
}
