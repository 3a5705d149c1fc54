package price

import (
	"encoding/json"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Price{
		"1.299,00 €": {"1299.00", "EUR"}, "$1,299.00": {"1299.00", ""}, "€ 12,99": {"12.99", "EUR"},
		"CHF 12.–": {"12", "CHF"}, "12,- Kč": {"12", "CZK"}, "1 299,00 zł": {"1299.00", "PLN"},
		"1\u202f299,00\u00a0€": {"1299.00", "EUR"}, "CHF 1'299.90": {"1299.90", "CHF"}, "1.299 €": {"1299", "EUR"},
		"US$ 1,299": {"1299", "USD"}, "0.999 USD": {"0.999", "USD"}, "From £5": {"5", "GBP"}, "19.99": {"19.99", ""},
		"1.234.567": {"1234567", ""}, "12.50 EUR/kg": {"12.50", "EUR"}, "R$ 99,9": {"99.9", "BRL"}, "007": {"7", ""},
		"£10 - £20": {"10", "GBP"}, "45,990円(税込)": {"45990", "JPY"}, "45 990 руб.": {"45990", "RUB"},
		"Rp 1.250.000": {"1250000", "IDR"}, "459,900원": {"459900", "KRW"}, "€15 inc. EUROPE": {"15", "EUR"}, "1 299 12": {"1299", ""},
	} {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{"", "free", "12345678901234567890"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{"$12.00": true, "From $12.00": true, "12,99 €": true, "Was £5": true, "12.99": false,
		"12 items": false, "Save $5 on orders over $50 today": false, "$5 - $9": false, "EUR 5": true, "Pack of 12": false, "价格：3999元": true, "￥3,999": true, "45,990円(税込)": true,
		"12 рубашек": false, "Rs. 1,999": true, "RPM 1200": false} {
		if Is(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// Whatever a page says, an amount is a JSON number.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1.299,00 €", "$1,299.00", "0", "00.5", "1..2", "’1’", "1 000\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := Parse(text); ok && !json.Valid([]byte(p.Amount)) {
			t.Errorf("%q gives the amount %q", text, p.Amount)
		}
		Is(text)
	})
}
