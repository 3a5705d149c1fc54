package aiconf

import (
	"regexp"
	"strings"

	"shoal.dev/shoal/pkg/amount"
)

// digits matches what may be a number in a page's text.
var digits = regexp.MustCompile(`[0-9](?:[0-9]|[.,][0-9]|[ \x{a0}\x{202f}\x{2009}'’][0-9]{3}(?:[^0-9]|$))*`)

// amounts returns the reader of a page's numbers: for machine format, or for the page's language.
func (r *reader) amounts(machine bool) *amount.Reader {
	if r.prices == nil {
		r.prices = &[2]amount.Reader{amount.NewReader(r.data.Lang).WithCurrency(
			r.data.MetaValue("product:price:currency", "og:price:currency")), amount.Machine()}
	}
	if machine {
		return &r.prices[1]
	}
	return &r.prices[0]
}

// number returns the number in a text as JSON, or "". A price's text may hold several numbers, if
// the first has a currency or cents, or if they form a range. most asks for the upper end of a
// range.
func number(text string, f form, in *amount.Reader, most bool) string {
	if f != money {
		return in.Quantity(text, f == count)
	}
	p, ok := in.Parse(text)
	_, cents, _ := strings.Cut(p.Amount, ".")
	if !ok || !p.Sole && !p.Named && len(cents) != 2 && p.Max == "" {
		return ""
	}
	if most && p.Max != "" {
		return p.Max
	}
	if p.Negative && strings.Trim(p.Amount, "0.") != "" {
		return "-" + p.Amount
	}
	return p.Amount
}

// isMost says whether the field is the upper end of a range.
func (f *field) isMost() bool { return f.means("highPrice") || f.means("maxSalary") }

// currencyOf returns the currency in a text as an ISO code; "" if it is not certain.
func currencyOf(text string, in *amount.Reader) string {
	if p, ok := in.Parse(text); ok {
		return p.Currency
	}
	return in.Currency(text)
}
