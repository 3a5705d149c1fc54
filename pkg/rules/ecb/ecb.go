// Package ecb provides the euro foreign exchange reference rates of the European Central Bank. One
// table is bundled with the program, and the newest one is read once a day. The package does not
// know what is converted.
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

// digits is the significant digits of rates made of two. The bank's own rates have fewer.
const digits = 10

// Table holds the rates of one or more days. It never changes.
type Table struct {
	days []day // ascending
}

type day struct {
	date  string                     // yyyy-MM-dd
	rates map[string]decimal.Decimal // units of a currency for one euro; EUR is 1
}

//go:embed bundled.xml
var bundled []byte

// Bundled returns the table bundled with the program.
func Bundled() *Table {
	table, err := Parse(bundled)
	if err != nil {
		panic("ecb: the bundled table: " + err.Error()) // a test parses it
	}
	return table
}

// Parse parses a table in the bank's XML format, for one or more days.
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

// add adds one Cube: a day, or a rate of the previous day element.
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

// IsCode reports whether text has the form of an ISO currency code.
func IsCode(text string) bool {
	return len(text) == 3 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Has reports whether the newest day has a rate for a currency.
func (t *Table) Has(currency string) bool {
	_, has := t.days[len(t.days)-1].rates[currency]
	return has
}

// Date returns the newest day, as yyyy-MM-dd.
func (t *Table) Date() string { return t.days[len(t.days)-1].date }

// counts is the time of day, in UTC, from which a day's rates are valid: the bank publishes at
// about 16:00 CET. A later repetition of an earlier conversion must not use them either.
const counts = 16 * time.Hour

// Rate returns how many units of to make one unit of from, and the day of the rate. That is the
// last day valid at the time that has both currencies. Weekends and bank holidays have no rates and
// use the previous day's. Rates from the euro are the bank's own, others are rounded to 10
// significant digits.
func (t *Table) Rate(from, to string, at time.Time) (rate decimal.Decimal, date string, ok bool) {
	today := at.UTC().Add(-counts).Format(time.DateOnly)
	for i := len(t.days) - 1; i >= 0; i-- {
		d := t.days[i]
		if d.date > today && i > 0 {
			continue // the oldest day also serves all earlier times
		}
		base, hasBase := d.rates[from]
		target, hasTarget := d.rates[to]
		if hasBase && hasTarget {
			return significant(target.DivRound(base, 2*digits)), d.date, true
		}
	}
	return decimal.Decimal{}, "", false
}

// significant rounds to the significant digits.
func significant(rate decimal.Decimal) decimal.Decimal {
	return rate.Round(digits - int32(rate.NumDigits()) - rate.Exponent())
}
