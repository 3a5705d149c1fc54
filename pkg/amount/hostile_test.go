package amount

import (
	"strings"
	"testing"
)

// hostile are texts that are easily misread. "" means no amount.
var hostile = []struct{ text, lang, amount, currency string }{
	// Cents that are raised or separate.
	{"$12⁹⁹", "en", "12.99", "USD"},
	{"Fr. 10⁵⁰", "de", "10.50", "CHF"},
	{"10⁵⁰", "de", "", ""},
	{"12⁹⁹ €", "de", "12.99", "EUR"},
	{"€ 12,⁹⁹", "de", "12.99", "EUR"},
	{"$12.⁹⁹", "en", "12.99", "USD"},
	{"$1,299⁹⁹", "en", "1299.99", "USD"},
	{"1.299⁹⁹ €", "de", "1299.99", "EUR"},
	{"1 299⁹⁹ zł", "pl", "1299.99", "PLN"},
	{"12€⁹⁹", "fr", "12.99", "EUR"},
	{"12 ⁹⁹ €", "fr", "12.99", "EUR"},
	{"12⁹⁹", "en", "12.99", ""},
	{"€10⁹⁹", "en", "10.99", "EUR"},
	{"$12.99¹", "en", "12.99", "USD"},
	{"$12¹", "en", "12", "USD"},
	{"12,99 €²", "de", "12.99", "EUR"},
	{"80 m² für 500 €", "de", "500", "EUR"},
	{"10⁶", "en", "", ""},
	{"10¹²", "en", "", ""},
	{"1.299,50²²", "de", "1299.50", ""},
	{"12€99", "fr", "12.99", "EUR"},
	{"12 €99", "fr", "12.99", "EUR"},
	{"12 € 99", "fr", "12.99", "EUR"},
	{"12€ 99", "fr", "12.99", "EUR"},
	{"$12 99", "en", "12.99", "USD"},
	{"12 99 €", "de", "12.99", "EUR"},
	{"€ 12 99", "nl", "12.99", "EUR"},
	{"1 299 00 €", "fr", "1299.00", "EUR"},
	{"$1,299 00", "en", "1299.00", "USD"},
	{"$12 345", "en", "12345", "USD"},
	{"12 .99 €", "en", "12.99", "EUR"},
	{"12 ,99 €", "de", "12.99", "EUR"},
	{"119, 95 €", "de", "119.95", "EUR"},
	{"19:90 kr", "sv", "19.90", "SEK"},
	{"kr 19:90", "nb", "19.90", "NOK"},
	{"199:- kr", "sv", "199", "SEK"},
	{"199:-", "sv", "199", ""},
	{"1 299:- kr", "sv", "1299", "SEK"},
	{"5 € 99 ct", "de", "5.99", "EUR"},
	{"£5 50p", "en", "5.50", "GBP"},
	{"5 euros et 50 centimes", "fr", "5.50", "EUR"},
	{"5 dollars and 5 cents", "en", "5.05", "USD"},
	{"12 kr 50 öre", "sv", "12.50", "SEK"},
	{"2 рубля 50 копеек", "ru", "2.50", "RUB"},
	{"$5 99¢", "en", "5.99", "USD"},
	{"$12 99 reviews", "en", "12", "USD"},
	{"$12 99 $15 50", "en", "12", "USD"},
	{"20 € 10 €", "de", "20", "EUR"},
	// Nothing before or after the sign.
	{"12,-", "de", "12", ""},
	{"12.–", "de-CH", "12", ""},
	{"1.299,- €", "de", "1299", "EUR"},
	{"€ 12,=", "nl", "12", "EUR"},
	{"12,-- €", "de", "12", "EUR"},
	{"12,— €", "de", "12", "EUR"},
	{"CHF 12.--", "de-CH", "12", "CHF"},
	{"-,99 €", "de", "0.99", "EUR"},
	{"–,79 €", "de", "0.79", "EUR"},
	{",99 €", "de", "0.99", "EUR"},
	{"€ -,79", "nl", "0.79", "EUR"},
	{"Fr. -.50", "de-CH", "0.50", "CHF"},
	{"CHF –.95", "de-CH", "0.95", "CHF"},
	{"$.99", "en", "0.99", "USD"},
	{"--,99 €", "de", "0.99", "EUR"},
	// Grouping.
	{"Fr. 1'299.50", "de-CH", "1299.50", "CHF"},
	{"Fr. 1´299.-", "de-CH", "1299", "CHF"},
	{"CHF 1`299.50", "de-CH", "1299.50", "CHF"},
	{"CHF 1′299.50", "de-CH", "1299.50", "CHF"},
	{"₹1,23,456.50", "en-IN", "123456.50", "INR"},
	{"Rs. 12,34,567/-", "en-IN", "1234567", "INR"},
	{"₹ 1,00,000", "en-IN", "100000", "INR"},
	{"1_000 $", "en", "1000", "USD"},
	{"1_234_567.50 USD", "en", "1234567.50", "USD"},
	{"12_99_5 €", "de", "5", "EUR"},
	{"1\u2009299,00 €", "fr", "1299.00", "EUR"},
	{"1\u200a299,00 €", "fr", "1299.00", "EUR"},
	{"1\u2006299 €", "fr", "1299", "EUR"},
	{"1\u205f299 €", "fr", "1299", "EUR"},
	{"1.299.00 €", "de", "", ""},
	{"12,9914,99 €", "de", "", ""},
	{"1299.001499.00", "en", "", ""},
	{"£12·99", "en", "12.99", "GBP"},
	{"12\n299 €", "de", "299", "EUR"},
	{"$\n12.99", "en", "12.99", "USD"},
	{"12.99\n\t€", "de", "12.99", "EUR"},
	{"12.99\u2003EUR", "de", "12.99", "EUR"},
	// Digits and signs of other scripts, and direction marks.
	{"١٬٢٣٤٫٥٠ ر.س", "ar", "1234.50", "SAR"},
	{"١،٢٣٤ ر.س", "ar", "1234", "SAR"},
	{"\u200f١٢٫٥٠\u00a0د.إ.\u200f", "ar", "12.50", "AED"},
	{"۱٬۲۵۰٬۰۰۰ ریال", "fa", "1250000", "IRR"},
	{"₹૧,૨૩,૪૫૬", "gu", "123456", "INR"},
	{"₹੧੨੫", "pa", "125", "INR"},
	{"₹௧,௨௫௦", "ta", "1250", "INR"},
	{"₹౧౨౫.౫౦", "te", "125.50", "INR"},
	{"₹೧೨೫", "kn", "125", "INR"},
	{"₹൧൨൫", "ml", "125", "INR"},
	{"៛១២៥០០", "km", "12500", "KHR"},
	{"₭໑໒໕໐໐", "lo", "12500", "LAK"},
	{"၁၂၅၀ Ks", "my", "1250", "MMK"},
	{"￥１２，３４５", "ja", "12345", "JPY"},
	{"ＵＳＤ　１２．５０", "ja", "12.50", "USD"},
	{"￡12.50", "en", "12.50", "GBP"},
	{"\u202b₪ 1,299.90\u202c", "he", "1299.90", "ILS"},
	// Signs.
	{"-12,99 €", "de", "-12.99", "EUR"},
	{"€ -12.99", "en", "-12.99", "EUR"},
	{"€-12.99", "nl", "-12.99", "EUR"},
	{"−$5", "en", "-5", "USD"},
	{"CHF-12.50", "de-CH", "-12.50", "CHF"},
	{"－500円", "ja", "-500", "JPY"},
	{"Rabatt - 5 €", "de", "5", "EUR"},
	// Factors and parts.
	{"USD12.5k", "en", "12500", "USD"},
	{"$1.2M", "en", "", ""},
	{"1.2M", "en", "", ""},
	{"20%", "en", "", ""},
	{"%20", "tr", "", ""},
	{"20 pour cent", "fr", "", ""},
	{"20 por ciento", "es", "", ""},
	{"20 per cent", "en", "", ""},
	{"5‰", "de", "", ""},
	{"-20 % 12,99 €", "de", "12.99", "EUR"},
	{"12½ €", "de", "", ""},
	{"£1¼", "en", "", ""},
	{"12^500 KWD", "en", "", ""},
	// Several prices, and other numbers.
	{"3 x 33,33 €", "de", "33.33", "EUR"},
	{"3 x 33,33", "fr", "33.33", ""},
	{"12x de R$ 99,90 ou R$ 1.198,80", "pt-BR", "1198.80", "BRL"},
	{"em até 10x de R$ 25,90 sem juros R$ 259,00 à vista", "pt-BR", "259.00", "BRL"},
	{"4 payments of $12.50 or $50.00", "en", "50.00", "USD"},
	{"4 mensualités de 12,50 € ou 50 €", "fr", "50", "EUR"},
	{"1 kg = 5,98 € 2,99 €", "de", "2.99", "EUR"},
	{"(1 l = 12,00 €) 9,00 €", "de", "9.00", "EUR"},
	{"2,99 € (1 kg = 5,98 €)", "de", "2.99", "EUR"},
	{"5,98 €/kg 2,99 €", "de", "2.99", "EUR"},
	{"$12.99$14.99", "en", "12.99", "USD"},
	{"12,99€14,99€", "de", "12.99", "EUR"},
	{"+49 30 123456 12,99 €", "de", "12.99", "EUR"},
	{"25.12.2024 12,99 €", "de", "12.99", "EUR"},
	{"2024-12-25: $5", "en", "5", "USD"},
	{"4006381333931 12,99 €", "de", "12.99", "EUR"},
	{"12,5 cm 9,99 €", "de", "9.99", "EUR"},
	{"25.12.", "de", "", ""},
	{"am 25.12. geliefert", "de", "", ""},
	{"12.30 Uhr", "de", "", ""},
	{"9,99 € ab 12.30 Uhr", "de", "9.99", "EUR"},
	{"Size 5 $10", "en", "10", "USD"},
	{"129,00 €99,00 €", "de", "129.00", "EUR"},
	{"5: $10", "en", "10", "USD"},
	// Only the beginning of a long text is read, and no number is cut in the middle.
	{strings.Repeat("x ", 96) + "$1,299.00", "en", "", ""},
	{strings.Repeat("x ", 97) + "1 299,00 €", "de", "", ""},
	{strings.Repeat("x ", 97) + "١٢٩٩", "ar", "", ""},
	{"$5 " + strings.Repeat("x ", 98) + "12", "en", "5", "USD"},
}

func TestHostile(t *testing.T) {
	wrong, tenfold := 0, 0
	for _, want := range hostile {
		got, ok := NewReader(want.lang).Parse(want.text)
		text := got.Amount
		if got.Negative {
			text = "-" + text
		}
		if ok == (want.amount != "") && text == want.amount && got.Currency == want.currency {
			continue
		}
		wrong++
		if significant(text) == significant(want.amount) &&
			canonical(text) != canonical(want.amount) {
			tenfold++
		}
		t.Errorf("%q in %s is read as %+v, want %s %s", want.text, want.lang, got, want.amount,
			want.currency)
	}
	t.Logf("%d texts, %d wrong, %d of them by a power of ten", len(hostile), wrong, tenfold)
}
