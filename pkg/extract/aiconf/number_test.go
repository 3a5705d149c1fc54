package aiconf

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/amount"
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
		{"1,23,456", quantity, false, "", "123456"},
		{"1.2,3.4", quantity, false, "", ""},
		{"ab 12,99 €", money, false, "de", "12.99"},
		{"129,- €", money, false, "de", "129"},
		{"-5,5 °C", quantity, false, "de", "-5.5"},
		{"Total: −3", quantity, false, "en", "-3"},
		{"12–15 €", money, false, "de", "12"},
		{"890 Kč", money, false, "cs", "890"},
		{"80 m²", quantity, false, "de", "80"},
		{"12 månader", quantity, false, "sv", "12"},
		{"RM50.00", money, false, "ms", "50.00"},
		{"Rs1,599.00", money, false, "en-IN", "1599.00"},
		{"₹1,23,456", money, false, "en-IN", "123456"},
		{"SEK199", money, false, "sv", "199"},
		{"KWD 12.500", money, false, "en", "12.500"},
		{"$.75", money, false, "en", "0.75"},
		{"40% OFF", money, false, "en", ""},
		{"$119. 95", money, false, "en", "119.95"},
		{"12,99 € statt 15,99 €", money, false, "de", "12.99"},
		{"2 for 10", money, false, "en", ""},
		{"X100", quantity, false, "en", ""},
		{"1.2k", quantity, false, "en", ""},
		{"3 Mio", quantity, false, "de", ""},
		{"4.5 out", quantity, false, "en", "4.5"},
		{"EUR12.50", money, false, "en", "12.50"},
		{"1.234", count, true, "", "1234"},
		{"007", quantity, true, "", "7"},
		{"free", money, false, "en", "0"},
		{"free shipping", money, false, "en", ""},
		{"", money, true, "", ""},
	} {
		in := amount.NewReader(c.lang)
		if c.machine {
			in = amount.Machine()
		}
		if got := number(c.text, c.form, &in, false); got != c.want {
			t.Errorf("%q (machine %v, %q): %q, want %q", c.text, c.machine, c.lang, got, c.want)
		}
	}
}

func TestCurrencyOf(t *testing.T) {
	for _, c := range []struct{ text, lang, want string }{
		{"EUR", "", "EUR"}, {"eur", "", "EUR"}, {"12,99 €", "", "EUR"}, {"£5", "", "GBP"},
		{"$5", "en-CA", "CAD"}, {"$5", "", "USD"},
		{"R$ 5", "pt-BR", "BRL"}, {"¥500", "ja", "JPY"}, {"¥500", "", ""},
		{"99 kr", "sv-SE", "SEK"}, {"99 kr", "en", ""},
		{"5 USD", "", "USD"}, {"30 руб", "ru", "RUB"}, {"10,75 TL", "", "TRY"},
		{"5 euro", "", "EUR"}, {"kr", "nb", "NOK"}, {"THE", "", ""}, {"12.00", "", ""},
	} {
		in := amount.NewReader(c.lang)
		if got := currencyOf(c.text, &in); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.text, c.lang, got, c.want)
		}
	}
}

var amountsFile = flag.String("amounts", "../../amount/testdata/amounts.jsonl",
	"texts with the amounts that they state, one JSON object a line")

// TestStatedAmounts checks that a price is read as package amount reads it. 99.5 % must be right,
// and none may be off by a power of ten.
func TestStatedAmounts(t *testing.T) {
	file, err := os.Open(*amountsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, wrong, tenfold := 0, 0, 0
	significant := func(amount string) string { // its digits without zeros at both ends
		return strings.Trim(strings.ReplaceAll(amount, ".", ""), "0")
	}
	for lines := bufio.NewScanner(file); lines.Scan(); all++ {
		var stated struct{ Text, Lang, Amount string }
		if err := json.Unmarshal(lines.Bytes(), &stated); err != nil {
			t.Fatal(err)
		}
		in := amount.NewReader(stated.Lang)
		text := number(stated.Text, money, &in, false)
		got, _ := strconv.ParseFloat(text, 64)
		if want, _ := strconv.ParseFloat(stated.Amount, 64); got != want ||
			(text == "") != (stated.Amount == "") {
			wrong++
			if significant(text) == significant(stated.Amount) && text != "" &&
				stated.Amount != "" {
				tenfold++
			}
			t.Logf("%q: %s, want %s", stated.Text, text, stated.Amount)
		}
	}
	t.Logf("%d of %d amounts wrong, %d of them off by a power of ten", wrong, all, tenfold)
	if all == 0 || 200*wrong > all || tenfold > 0 {
		t.Error("too many are wrong")
	}
}

// TestZones: a time counts as a moment only if its zone is unambiguous.
func TestZones(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.FixedZone("EST", -5*60*60)
	for _, c := range []struct{ text, format, want string }{
		{"Mon, 02 Mar 2026 15:04:05 GMT", "date-time", "2026-03-02T15:04:05Z"},
		{"Mon, 02 Mar 2026 15:04:05 UTC", "date-time", "2026-03-02T15:04:05Z"},
		{"Mon, 02 Mar 2026 15:04:05 -0500", "date-time", "2026-03-02T15:04:05-05:00"},
		{"2026-03-02T15:04:05+0100", "date-time", "2026-03-02T15:04:05+01:00"},
		{"Mon, 02 Mar 2026 23:04:05 EST", "date-time", ""},
		{"Mon, 02 Mar 2026 23:04:05 CEST", "date-time", ""},
		{"Mon, 02 Mar 2026 23:04:05 EST", "date", "2026-03-02"},
		{"2026-03-02 15:04:05", "date-time", "2026-03-02 15:04:05"},
	} {
		if got := dateIn(c.text, c.format, false); got != c.want {
			t.Errorf("%s as %s: %q, want %q", c.text, c.format, got, c.want)
		}
	}
}
