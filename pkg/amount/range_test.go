package amount

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestRange reads both ends of ranges.
func TestRange(t *testing.T) {
	for _, c := range []struct{ text, low, high, currency string }{
		{"£10 - £20", "10", "20", "GBP"}, {"12–15 €", "12", "15", "EUR"},
		{"€ 12,50 bis € 15", "12.50", "15", "EUR"}, {"12 € a 15 €", "12", "15", "EUR"},
		{"20 € 10 €", "20", "", "EUR"}, {"20 € – 10", "20", "", "EUR"},
		{"50 - $2.00", "2.00", "", "USD"}, {"5 € - 20%", "5", "", "EUR"},
		{"5 - 20% 30 €", "30", "", "EUR"}, {"$1,299 to $1,500", "1299", "1500", "USD"},
		// Each end has its factor.
		{"10K-20K USD", "10000", "20000", "USD"}, {"$10k-$20k", "10000", "20000", "USD"},
		{"$10K - $20K", "10000", "20000", "USD"}, {"€1.5k-€2k", "1500", "2000", "EUR"},
		{"$10k to $20k", "10000", "20000", "USD"}, {"$10k-$20,000", "10000", "20000", "USD"},
		{"$900k-1.2 million", "900000", "1200000", "USD"},
		{"$10k-$20k per month", "10000", "", "USD"}, {"$500k-1.5M", "500000", "", "USD"},
		// Shoppers mean the factor and the currency for both ends if each is there once.
		{"$10-20K", "10000", "20000", "USD"}, {"10-20K USD", "10000", "20000", "USD"},
		{"1-2 Mio €", "1000000", "2000000", "EUR"}, {"1,5–2 Mio €", "1500000", "2000000", "EUR"},
		{"$1-2 million", "1000000", "2000000", "USD"}, {"10 € – 20k", "10000", "20000", "EUR"},
		{"₹10 - 15 lakh", "1000000", "1500000", "INR"}, {"₹10-15 L", "1000000", "1500000", "INR"},
		{"10–20 тыс. руб", "10000", "20000", "RUB"},
		// The factor is the upper end's own if the range would fall with it.
		{"$500-1K", "500", "1000", "USD"}, {"$500-$1K", "500", "1000", "USD"},
		{"900–1 million USD", "900", "1000000", "USD"},
		// Where each end has a currency, the factor is in doubt. So it is where it is not known.
		{"$10-$20K", "", "", ""}, {"$1 - $2 million", "", "", ""}, {"$1-2 billion", "", "", ""},
		{"$10-20m", "", "", ""}, {"1–2万円", "", "", ""}, {"1.500-2 Mio €", "", "", ""},
		{"1-1.250 Mio €", "", "", ""}, {"500m - 2 Mrd. €", "", "", ""},
		{"10k-20k downloads", "", "", ""},
		// No range of prices.
		{"18k - $500", "500", "", "USD"}, {"18k - $25,000", "25000", "", "USD"},
		{"$500 - 18k gold", "500", "", "USD"}, {"$12 - 2m cable", "12", "", "USD"},
		// Hundredths.
		{"50–99 ct", "0.50", "0.99", ""}, {"50c-99c", "0.50", "0.99", ""},
		{"50-99p", "0.50", "0.99", ""}, {"50 ct bis 99 ct", "0.50", "0.99", ""},
		{"99 ct - 1,50 €", "0.99", "1.50", "EUR"}, {"99p-£1.99", "0.99", "1.99", "GBP"},
		{"99¢ - $1.99", "0.99", "1.99", "USD"}, {"2 € – 99 ct", "2", "", "EUR"},
		{"50–1.250 ct", "", "", ""}, {"250-500 millimes", "0.250", "0.500", ""},
		// The decimal sign is that of the currency and the unit at the other end.
		{"KWD 12.500-15.750", "12.500", "15.750", "KWD"},
		{"12.500-15.750 KWD", "12.500", "15.750", "KWD"},
		{"1,799–1,899 €/l", "1.799", "1.899", "EUR"}, {"€1,799–1,899/l", "1.799", "1.899", "EUR"},
		{"5,98 - 6,98 €/kg 2,99 €", "2.99", "", "EUR"},
	} {
		if got, ok := NewReader("").Parse(c.text); got.Amount != c.low || got.Max != c.high ||
			got.Currency != c.currency || ok != (c.low != "") {
			t.Errorf("%q is read as %+v, want %s to %s %s", c.text, got, c.low, c.high, c.currency)
		}
	}
}

// TestRangeOfUnits: a factor or a part at the upper end, or at both, counts for both.
func TestRangeOfUnits(t *testing.T) {
	places := maps.Clone(powers)
	for word := range hundredths {
		places[word] = -2
	}
	for word := range thousandths {
		places[word] = -3
	}
	places["p"], places["c"] = -2, -2
	words := slices.Sorted(maps.Keys(places))
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(words).Draw(t, "word")
		low := rapid.IntRange(1, 98).Draw(t, "low")
		high := rapid.IntRange(low+1, 99).Draw(t, "high")
		sign := rapid.SampledFrom([]string{"-", "–", " - ", " – ", " to ", " bis ", "~"}).
			Draw(t, "sign")
		first, last := strconv.Itoa(low), strconv.Itoa(high)+word
		if rapid.Bool().Draw(t, "both") {
			first += word
		}
		if places[word] > 0 && rapid.Bool().Draw(t, "before") {
			first = "$" + first
		} else if places[word] > 0 {
			last += " USD"
		}
		ends := [2]number{{whole: strconv.Itoa(low)}, {whole: strconv.Itoa(high)}}
		for i := range ends {
			ends[i].shift(places[word])
		}
		text := fmt.Sprint(first, sign, last)
		got, _ := NewReader("").Parse(text)
		if got.Amount != ends[0].json(true) || got.Max != ends[1].json(true) {
			t.Fatalf("%q is read as %+v, want %+v", text, got, ends)
		}
	})
}
