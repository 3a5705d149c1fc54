package aiconf

import (
	"encoding/json"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		text    string
		form    form
		machine bool
		lang    string
		want    string
	}{
		{"1.299,00 €", money, false, "de", "1299.00"},
		{"1,299.00", money, false, "", "1299.00"},
		{"€ 1 299,00", money, false, "fr", "1299.00"},
		{"CHF 1'299.00", money, false, "de-CH", "1299.00"},
		{"1 299 kr", money, false, "sv", "1299"},
		{"12,99", money, true, "", "12.99"},
		{"12.9", quantity, true, "", "12.9"},
		{"1.299", money, true, "", "1.299"},
		{"1,299", money, true, "", "1299"},
		{"1.299", money, false, "", "1299"},
		{"1.299 €", money, false, "en", "1299"},
		{"1.250 kg", quantity, false, "de-DE", "1250"},
		{"1,250 kg", quantity, false, "de-DE", "1.250"},
		{"1.250 kg", quantity, false, "en", "1.250"},
		{"1.250 kg", quantity, false, "", ""},
		{"0.125", quantity, false, "", "0.125"},
		{"1.234.567", quantity, false, "", "1234567"},
		{"1,234,567.89", quantity, false, "", "1234567.89"},
		{"12.34.56", quantity, false, "", ""},
		{"1,23,456", quantity, false, "", ""},
		{"1.2,3.4", quantity, false, "", ""},
		{"ab 12,99 €", money, false, "de", "12.99"},
		{"129,- €", money, false, "de", "129"},
		{"-5,5 °C", quantity, false, "de", "-5.5"},
		{"Total: −3", quantity, false, "en", "-3"},
		{"12–15 €", money, false, "de", ""},
		{"2 for 10", money, false, "en", ""},
		{"X100", quantity, false, "en", ""},
		{"1.2k", quantity, false, "en", ""},
		{"3 Mio", quantity, false, "de", ""},
		{"4.5 out", quantity, false, "en", "4.5"},
		{"EUR12.50", money, false, "en", "12.50"},
		{"1.234", count, true, "", "1234"},
		{"007", quantity, true, "", "7"},
		{"free", money, false, "en", ""},
		{"", money, true, "", ""},
	} {
		if got := number(c.text, c.form, c.machine, c.lang); got != c.want {
			t.Errorf("%q (machine %v, %q): %q, want %q", c.text, c.machine, c.lang, got, c.want)
		}
	}
}

func TestCurrencyOf(t *testing.T) {
	for _, c := range []struct{ text, lang, want string }{
		{"EUR", "", "EUR"}, {"eur", "", "EUR"}, {"12,99 €", "", "EUR"}, {"£5", "", "GBP"}, {"$5", "en-CA", "CAD"}, {"$5", "", "USD"},
		{"R$ 5", "pt-BR", "BRL"}, {"¥500", "ja", "JPY"}, {"¥500", "", ""}, {"99 kr", "sv-SE", "SEK"}, {"99 kr", "en", ""},
		{"5 USD", "", "USD"}, {"THE", "", ""}, {"12.00", "", ""},
	} {
		if got := currencyOf(c.text, c.lang); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.text, c.lang, got, c.want)
		}
	}
}

func FuzzNumber(f *testing.F) {
	f.Add("1.299,00 €", "de", true)
	f.Add("− 1'000'000", "", false)
	f.Fuzz(func(t *testing.T, text, lang string, machine bool) {
		for _, form := range []form{money, quantity} {
			if got := number(text, form, machine, lang); got != "" && !json.Valid([]byte(got)) {
				t.Fatalf("%q: %q is no number of JSON", text, got)
			}
		}
	})
}
