package amount

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

const own = "testdata/amounts.jsonl" // prices as a hundred countries write them

var amounts = flag.String("amounts", own, "texts with the amounts that they state, one JSON "+
	"object a line")

// stated is a text with its expected amount. Without a currency, any may be found.
type stated struct {
	Text     string `json:"text"`
	Lang     string `json:"lang"`
	Amount   string `json:"amount"` // "": none
	Currency string `json:"currency"`
}

// TestAmounts reads the prices of a file. In its own file all must be right. In another, 99.5 %
// must be, and none may be off by a power of ten.
func TestAmounts(t *testing.T) {
	list := readStated(t)
	wrong, foreign, tenfold, named := 0, 0, 0, 0
	for _, want := range list {
		got, _ := NewReader(want.Lang).Parse(want.Text)
		if same := canonical(got.Amount) == canonical(want.Amount); !same {
			wrong++
			t.Logf("%q: %s, want %s", want.Text, got.Amount, want.Amount)
			if got.Amount != "" && want.Amount != "" &&
				significant(got.Amount) == significant(want.Amount) {
				tenfold++
			}
		}
		if want.Currency == "" {
			continue
		}
		if named++; got.Currency != want.Currency {
			foreign++
			t.Logf("%q: %q, want %s", want.Text, got.Currency, want.Currency)
		}
	}
	t.Logf("%d texts: %d amounts wrong, %d of them off by a power of ten; %d of %d currencies wrong", len(list), wrong, tenfold, foreign, named)
	if *amounts == own && wrong+foreign > 0 || len(list) == 0 || 200*wrong > len(list) ||
		tenfold > 0 || 200*foreign > len(list) {
		t.Error("too many are wrong")
	}
}

func readStated(t *testing.T) []stated {
	t.Helper()
	file, err := os.Open(*amounts)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []stated
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one stated
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		list = append(list, one)
	}
	return list
}

// canonical returns an amount without trailing zeros in its fraction.
func canonical(amount string) string {
	if strings.Contains(amount, ".") {
		amount = strings.TrimRight(strings.TrimRight(amount, "0"), ".")
	}
	return amount
}

// significant returns an amount's digits without zeros at both ends.
func significant(amount string) string {
	return strings.Trim(strings.ReplaceAll(amount, ".", ""), "0")
}
