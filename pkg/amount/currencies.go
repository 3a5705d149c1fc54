package amount

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	textnumber "golang.org/x/text/number"

	"shoal.dev/shoal/pkg/wordset"
)

// currencies lists the signs and words beside amounts. A word with a _ before it has other
// meanings, too: it names a currency, but does not make a number a price. Any other _ means a
// space.
const currencies = `
AED د.إ درهم_إماراتي Dhs Dhs. AED.
AFN ؋ Afs
AMD ֏ դրամ драм драмов
AOA Kz
ARS AR$ $AR ARS$
AUD A$ AU$ AU_$ $AU AUD$
AZN ₼ manat
BAM KM км
BDT ৳ টাকা Tk Tk. taka
BGN лв лева лева. лв. lv. leva
BHD د.ب .د.ب BD
BIF FBu
BND B$
BOB Bs. Bs bolivianos
BRL R$ BR$ reais _real
BWP _pula
CAD C$ CA$ CAN$ CAD$ $CA CDN$
CDF FC
CHF SFr. SFr Fr. sFr. Franken
CLP CL$ CLP$
CNY 人民币 人民幣 RMB CN¥ yuan
COP COL$ CO$ COP$
CRC ₡ colones
CUC CUC$
CZK Kč Kčs korun korun_českých
DKK Dkr dkr Dkk
DOP RD$
DZD دج د.ج DA
EGP ج.م جنيه E£ EG£ LE L.E. EGP.
ETB ብር
EUR € euro euros Eur EURO ευρώ евро eura eurų eiro eurot eur.
GBP £ _pounds UK£ GB£ _quid
GEL ₾ ლარი ლ lari лари
GHS GH₵ GH¢ ₵ GH₡
GTQ Q
HKD HK$ HKD$ 港元 港幣 港币
HNL lempiras
HRK kn kuna
HUF Ft forint Ft.
IDR Rp Rp. rupiah
ILS ₪ NIS ש"ח ש'ח שקל שקלים ש״ח nis
INR ₹ ₨. रु रू र रुपये ரூ રૂ రూ Rs./-
IQD ع.د د.ع
IRR ریال﷼
ISK Íkr íkr
JMD J$ JM$
JOD د.أ د.ا JD
JPY 円 yen JP¥ 日元 日圓
KES KSh KSh. Ksh Kshs Ksh.
KGS сом
KHR ៛
KRW ₩ 원 ￦ KR₩ _won 韩元 韓元
KWD د.ك KD K.D. KD.
KZT ₸ тг тенге tenge
LAK ₭
LBP ل.ل. ل.ل L£ L.L.
LKR රු රු. SLRs
LYD ل.د د.ل LD
MAD د.م. د.م Dh DH Dhs.MA dirhams
MDL leu_moldovenesc
MKD ден ден. den. денари
MMK Ks kyat
MNT ₮
MOP MOP$
MUR MURs
MVR Rf MRf
MXN MX$ MXN$ Mex$ M.N. MXP
MYR RM ringgit
MZN MT MTn
NAD N$
NGN ₦ naira
NOK Nkr NKr nkr
NPR रू. नेरू NRs
NZD NZ$ NZ_$ $NZ NZD$
OMR ر.ع. ر.ع
PAB B/. B/
PEN S/. S/ soles
PHP ₱ Php PhP PHP.
PKR PKRs Rs.PK روپے
PLN zł Zł ZŁ zl złotych złote zloty zlotych
PYG ₲ Gs. guaraníes
QAR ر.ق QR QAR.
RON lei Lei LEI
RSD din. дин. дин din RSD. dinara динара
RUB ₽ руб руб. Руб РУБ р. Р рублей рубля рубль rub rub. Rub Rbl RUB. rubles roubles
RWF FRw RF
SAR ر.س ﷼ SR ريال_سعودي
SEK Skr SKr skr
SGD S$ SG$ SGD$ $SG
SYP ل.س
THB ฿ บาท baht Baht
TMT ТМТ
TND د.ت DT TND.
TOP T$
TRY ₺ TL TL. lirası _lira
TTD TT$
TWD NT$ NTD NT 新台幣 新臺幣 台幣
TZS TSh TSh. Tsh
UAH ₴ грн грн. Грн hrn гривень гривні гривен UAH.
UGX USh Ush
USD US$ US_$ U$S u$s U$ $US USD$ 美元 $_US
UYU $U UY$
UZS so'm so‘m soʻm сум сўм
VND ₫ đ đồng VNĐ vnđ vnd đ.
XAF FCFA_BEAC
XOF FCFA CFA F_CFA Fcfa
ZAR R rand _Rand
ZMW ZK
`

// shared lists the signs and words of several currencies. The first currency is the usual one on
// pages worldwide, unless it is -: then it is uncertain.
const shared = `
$ USD AUD CAD NZD SGD HKD MXN ARS CLP COP TWD BND JMD DOP TTD NAD FJD BBD BSD BZD GYD SRD UYU LRD
dollars USD AUD CAD NZD SGD HKD
dollar USD AUD CAD NZD SGD HKD
dólares USD
kr - SEK NOK DKK ISK
kr. - DKK SEK NOK ISK
Kr - SEK NOK DKK ISK
Kr. - DKK SEK NOK ISK
KR - SEK NOK DKK ISK
kronor SEK
kroner - DKK NOK
krónur ISK
¥ - JPY CNY
￥ - JPY CNY
元 CNY TWD HKD MOP
圓 - TWD HKD JPY
圆 CNY
Rs INR PKR LKR NPR MUR
Rs. INR PKR LKR NPR MUR
RS INR PKR LKR NPR MUR
₨ - PKR INR LKR NPR MUR
rupees INR PKR LKR NPR MUR
Br BYN ETB
دينار - KWD BHD JOD IQD TND LYD DZD
درهم AED MAD
ريال SAR QAR OMR YER
ریال IRR
pesos - MXN ARS CLP COP PHP UYU DOP CUP
peso - MXN ARS CLP COP PHP UYU DOP CUP
francs - CHF XOF XAF
ƒ ANG AWG
₤ - GBP TRY
`

// codes are the currencies that shops write as codes. Codes such as TOP, which occur as capitalized
// words beside numbers, are left out.
var codes = wordset.Of("AED AFN AMD AOA ARS AUD AZN BAM BDT BGN BHD BIF BND BOB BRL BWP BYN CAD " +
	"CDF CHF CLP CNY COP CRC CUP CZK DKK " +
	"DOP DZD EGP ETB EUR GBP GEL GHS GTQ HKD HNL HRK HUF IDR ILS INR IQD IRR ISK JMD JOD JPY " +
	"KES KGS KHR KRW KWD KZT LAK LBP LKR LYD " +
	"MAD MDL MGA MKD MMK MNT MOP MUR MVR MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK " +
	"PHP PKR PLN PYG QAR RON RSD RUB RWF " +
	"SAR SEK SGD SYP THB TND TRY TTD TWD TZS UAH UGX USD UYU UZS VND XAF XOF YER ZAR ZMW")

// IsCode reports whether text is a currency's code.
func IsCode(text string) bool { return codes[text] }

// spelling is a way to write a currency.
type spelling struct {
	code  string   // ISO 4217; "": a sign of several currencies
	of    []string // the currencies of a shared sign, the usual one or "-" first
	weak  bool     // has other meanings, too
	fused bool     // may be written without a space to the next word
}

// maxSpelling is the most bytes of a spelling.
const maxSpelling = 24

var spellings = newSpellings()

func newSpellings() map[string]*spelling {
	found := map[string]*spelling{}
	for line := range strings.Lines(currencies) {
		names := strings.Fields(line)
		for _, name := range names[min(1, len(names)):] {
			s := &spelling{code: names[0]}
			if s.weak = name[0] == '_'; s.weak {
				name = name[1:]
			}
			// A single letter may also be a size or a part of a name.
			s.weak = s.weak || utf8.RuneCountInString(name) == 1 &&
				unicode.IsLetter(firstRune(name)) && firstRune(name) < 0x0e00
			add(found, strings.ReplaceAll(name, "_", " "), s)
		}
	}
	for code := range codes {
		found[code] = &spelling{code: code}
		if lower := strings.ToLower(code); !slices.Contains([]string{"cup", "mad", "pen", "try",
			"cop", "bob", "bam", "mop", "nad"}, lower) {
			found[lower] = &spelling{code: code}
		}
	}
	for _, toman := range []string{"تومان", "toman"} { // ten rials; not in the list
		add(found, toman, &spelling{})
	}
	for line := range strings.Lines(shared) {
		if names := strings.Fields(line); len(names) > 0 {
			add(found, names[0], &spelling{of: names[1:]})
		}
	}
	return found
}

// add stores a spelling. Longer words are also stored in capitals and capitalized.
func add(to map[string]*spelling, name string, s *spelling) {
	s.fused = unicode.In(firstRune(name), unicode.Han, unicode.Hangul, unicode.Thai, unicode.Sc)
	to[name] = s
	if utf8.RuneCountInString(name) > 3 && name == strings.ToLower(name) {
		first := firstRune(name)
		to[strings.ToUpper(name)] = s
		to[string(unicode.ToUpper(first))+name[utf8.RuneLen(first):]] = s
	}
}

// spellingBefore returns the currency at the end of a text, and where it begins.
func spellingBefore(text string) (*spelling, int) {
	for from := max(0, len(text)-maxSpelling); from < len(text); from++ {
		if s := spellings[text[from:]]; s != nil &&
			(!isWord(firstRune(text[from:])) || s.fused || !isWord(lastRune(text[:from]))) {
			return s, from
		}
	}
	return nil, len(text)
}

// spellingAfter returns the currency at the beginning of a text, and where it ends.
func spellingAfter(text string) (*spelling, int) {
	for end := min(len(text), maxSpelling); end > 0; end-- {
		if s := spellings[text[:end]]; s != nil &&
			(!isWord(lastRune(text[:end])) || s.fused || !isWord(firstRune(text[end:]))) {
			return s, end
		}
	}
	return nil, 0
}

// isWord reports whether a rune continues a word.
func isWord(r rune) bool { return unicode.IsLetter(r) && r != utf8.RuneError }

// place is what a page's language says about its numbers.
type place struct {
	currency string // of the language's country; "" if uncertain
	region   string // of the language, if it names one; ""
	decimal  byte   // decimal sign; 0 if unknown
}

// abroad reports whether a page is for another country than that of a currency.
func (p place) abroad(code string) bool { return p.region != "" && p.region != code[:2] }

// placeOf looks up a language: a tag of BCP 47, or with a _ as some pages write it.
func placeOf(lang string) place {
	tag, err := language.Parse(lang)
	if err != nil || lang == "" {
		return place{}
	}
	if base, sure := tag.Base(); sure == language.No || base.String() == "und" {
		return place{}
	}
	p := place{decimal: decimalIn(tag)}
	if unit, sure := currency.FromTag(tag); sure >= language.Low {
		p.currency = unit.String()
	}
	if region, sure := tag.Region(); sure == language.Exact {
		p.region = region.String()
	}
	return p
}

// decimalIn returns the decimal sign of a language.
func decimalIn(tag language.Tag) byte {
	written := plain(message.NewPrinter(tag).Sprint(textnumber.Decimal(1.5)))
	if at := strings.IndexAny(written, ".,"); at >= 0 {
		return written[at]
	}
	return 0
}

// hasMils reports whether a currency has a thousand parts, like the dinar of Kuwait.
func hasMils(code string) bool {
	unit, err := currency.ParseISO(code)
	if err != nil {
		return false
	}
	scale, _ := currency.Standard.Rounding(unit)
	return scale == 3
}

// decimalOf returns the decimal sign in the country of a currency.
func decimalOf(code string) byte {
	region := code[:2]
	base, _ := language.Make("und-" + region).Base() // CLDR knows a country by its language
	return decimalIn(language.Make(base.String() + "-" + region))
}
