// Package ecb owns the euro foreign exchange reference rates of the European Central Bank. It has
// tables of them: one that is bundled with the program, and the newest one, read once a day. It
// does not own what is converted.
package ecb

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// Bounds of a table.
const (
	maxBytes      = 1 << 20
	maxDays       = 400
	maxCurrencies = 200
)

// digits is how many significant digits a rate has that is made of two. The bank's own have fewer.
const digits = 10

// Table holds rates of one day or several. It never changes.
type Table struct {
	days []day // ascending
}

type day struct {
	date  string                     // yyyy-MM-dd
	rates map[string]decimal.Decimal // units of a currency for one euro; EUR is 1
}

//go:embed bundled.xml
var bundled []byte

// Bundled is the table that the program brings along.
func Bundled() *Table {
	table, err := Parse(bundled)
	if err != nil {
		panic("ecb: the bundled table: " + err.Error()) // a test reads it
	}
	return table
}

// Parse reads a table in the bank's XML form, of one day or of more.
func Parse(document []byte) (*Table, error) {
	if len(document) > maxBytes {
		return nil, fmt.Errorf("ecb: the table has more than %d bytes", maxBytes)
	}
	table := &Table{}
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("ecb: read a table: %w", err)
		}
		element, ok := token.(xml.StartElement)
		if !ok || element.Name.Local != "Cube" {
			continue
		}
		if err := table.add(element.Attr); err != nil {
			return nil, err
		}
	}
	table.days = slices.DeleteFunc(table.days, func(d day) bool { return len(d.rates) == 1 })
	if len(table.days) == 0 {
		return nil, errors.New("ecb: the table has no rates")
	}
	slices.SortFunc(table.days, func(a, b day) int { return strings.Compare(a.date, b.date) })
	return table, nil
}

// add takes one Cube: a day, or a rate of the day before it.
func (t *Table) add(attributes []xml.Attr) error {
	var date, currency, rate string
	for _, attribute := range attributes {
		switch attribute.Name.Local {
		case "time":
			date = attribute.Value
		case "currency":
			currency = attribute.Value
		case "rate":
			rate = attribute.Value
		}
	}
	switch {
	case date != "":
		if _, err := time.Parse(time.DateOnly, date); err != nil || len(t.days) == maxDays {
			return fmt.Errorf("ecb: the day %q cannot be read, or is one too many", date)
		}
		t.days = append(t.days, day{date, map[string]decimal.Decimal{"EUR": decimal.NewFromInt(1)}})
	case currency != "" && len(t.days) > 0:
		last := t.days[len(t.days)-1]
		value, err := decimal.NewFromString(rate)
		plain := len(rate) <= 20 && !strings.ContainsAny(rate, "eE")
		if err != nil || !plain || !value.IsPositive() || !IsCode(currency) ||
			len(last.rates) == maxCurrencies {
			return fmt.Errorf("ecb: the rate %.20q of %.20q cannot be read, or is one too many",
				rate, currency)
		}
		last.rates[currency] = value
	}
	return nil
}

// IsCode says whether text has the form of an ISO currency code.
func IsCode(text string) bool {
	return len(text) == 3 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Has says whether there is a rate of a currency on the newest day.
func (t *Table) Has(currency string) bool {
	_, has := t.days[len(t.days)-1].rates[currency]
	return has
}

// Date is the newest day, as yyyy-MM-dd.
func (t *Table) Date() string { return t.days[len(t.days)-1].date }

// counts is the hour of a day, in UTC, from which its rates count: the bank publishes them at about
// 16:00 CET. Before that nobody has them, and what is converted again later must not either.
const counts = 16 * time.Hour

// Rate is how many units of one currency make one of another, and the day that says so. That is the
// last one that counts at the time and has both. There are none of weekends and bank holidays:
// those take the day before. Rates from the euro are the bank's own, others are rounded to 10
// significant digits.
func (t *Table) Rate(from, to string, at time.Time) (rate decimal.Decimal, date string, ok bool) {
	today := at.UTC().Add(-counts).Format(time.DateOnly)
	for i := len(t.days) - 1; i >= 0; i-- {
		d := t.days[i]
		if d.date > today && i > 0 {
			continue // the oldest day serves all before it
		}
		base, hasBase := d.rates[from]
		target, hasTarget := d.rates[to]
		if hasBase && hasTarget {
			return significant(target.DivRound(base, 2*digits)), d.date, true
		}
	}
	return decimal.Decimal{}, "", false
}

// significant rounds to so many digits.
func significant(rate decimal.Decimal) decimal.Decimal {
	return rate.Round(digits - int32(rate.NumDigits()) - rate.Exponent())
}
