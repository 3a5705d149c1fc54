package amount

import (
	"strconv"
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	textnumber "golang.org/x/text/number"
)

// TestParts: hundredths of a currency, and the toman, which is ten rials and has no code.
func TestParts(t *testing.T) {
	for text, want := range map[string]struct{ amount, currency string }{
		"99¢": {"0.99", ""}, "99 ¢": {"0.99", ""}, "99 ct": {"0.99", ""}, "99 Cent": {"0.99", ""},
		"99 centimes": {"0.99", ""}, "50p": {"0.50", ""},
		"5 pence": {"0.05", ""}, "250 öre": {"2.50", ""}, "79.9 ct": {"0.799", ""},
		"1 250 копеек":  {"12.50", ""},
		"۱۲۵٬۰۰۰ تومان": {"125000", ""}, "125,000 Toman": {"125000", ""},
		"125,000 ریال": {"125000", "IRR"},
		"5 € 99 ct":    {"5.99", "EUR"}, "1080p": {"1080", ""}, "50 p": {"50", ""},
		"12 centimetres": {"12", ""},
		"99c":            {"0.99", ""}, "20C": {"20", ""}, "100c": {"100", ""}, "50 c": {"50", ""},
		"50 Rappen": {"0.50", ""}, "50 kuruş": {"0.50", ""}, "50 paise": {"0.50", ""},
		"50 bani": {"0.50", ""}, "12 lei 50 bani": {"12.50", "RON"},
		"500 millimes": {"0.500", ""}, "5 DT 50 millimes": {"5.050", "TND"},
		"5 KD 250 fils": {"5.250", "KWD"}, "KWD 5 50 fils": {"5.050", "KWD"},
		"5 AED 50 fils": {"5.50", "AED"}, "5 AED 250 fils": {"5", "AED"},
	} {
		if got, ok := Parse(text); !ok || got.Amount != want.amount ||
			got.Currency != want.currency {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{"Lakh 1.5", "Save $5", "You save: £5.00", "Sie sparen 5 €",
		"SAVE 5", "50 fils"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	if got, ok := Parse("$15 Save $5"); !ok || got.Amount != "15" {
		t.Errorf("a price before what is saved: %+v", got)
	}
}

// TestFils: fils are thousandths of dinars and hundredths of the dirham, and uncertain elsewhere.
func TestFils(t *testing.T) {
	for lang, want := range map[string]string{"en-AE": "0.50", "ar-AE": "0.50", "en-KW": "0.050",
		"ar-BH": "0.050", "en": "", "ar": "", "de-DE": ""} {
		if got, ok := NewReader(lang).Parse("50 fils"); got.Amount != want || ok != (want != "") {
			t.Errorf("in %s: %+v, want %q", lang, got, want)
		}
	}
}

// TestMils: with a thousand parts, a comma may begin a fraction of three digits. It does where the
// page's language or the currency's country writes it so. A page for another country may not.
func TestMils(t *testing.T) {
	for _, c := range []struct{ text, lang, want string }{
		{"12,500 TND", "", "12.500"}, {"12,500 TND", "en", "12.500"}, {"LYD 35,000", "", "35.000"},
		{"LYD 35,000", "en", "35.000"}, {"12,500 د.ت", "ar", "12.500"},
		{"35,000 د.ل", "ar", "35.000"}, {"12,500 DT", "fr", "12.500"},
		{"12,500 TND", "ar-TN", "12.500"}, {"12,500 TND", "en-TN", "12.500"},
		{"35,000 LYD", "ar-LY", "35.000"},
		{"12,500 TND", "fr-FR", "12.500"}, {"12,500 TND", "en-US", "12500"},
		{"35,000 LYD", "en-GB", "35000"}, {"12,500 TND", "ar-SA", "12500"},
		{"12,500 TND", "ar-LY", "12.500"}, {"12.500 TND", "en-US", "12.500"},
		{"1,250,500 TND", "en", "1250500"}, {"1.250,500 TND", "", "1250.500"},
		{"12,500 KWD", "", "12500"}, {"12,500 KWD", "en", "12500"}, {"12,500 د.ك", "ar", "12500"},
		{"12,500 BHD", "ar-BH", "12500"}, {"12,500 JOD", "en-JO", "12500"},
		{"12,500 OMR", "ar", "12500"}, {"12,500 KWD", "fr", "12.500"},
		{"12,500 JOD", "de", "12.500"}, {"12.500 OMR", "ar", "12.500"},
		{"12,500 IQD", "ar", "12500"}, {"12,500 DZD", "ar-DZ", "12500"},
		{"12,500 MAD", "fr", "12500"},
	} {
		if got, _ := NewReader(c.lang).Parse(c.text); got.Amount != c.want {
			t.Errorf("%q in %q is read as %+v, want %s", c.text, c.lang, got, c.want)
		}
	}
	for _, code := range []string{"BHD", "JOD", "KWD", "LYD", "OMR", "TND"} {
		for _, lang := range places {
			for _, whole := range []int{1, 12, 999, 1299} {
				text := message.NewPrinter(language.MustParse(lang)).Sprint(code, " ",
					textnumber.Decimal(float64(whole)+0.5, textnumber.Scale(3)))
				want := strconv.Itoa(whole) + ".500"
				if got, _ := NewReader(lang).Parse(text); got.Amount != want {
					t.Errorf("%q in %s is read as %+v, want %s", text, lang, got, want)
				}
			}
		}
	}
}
