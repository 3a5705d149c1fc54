package wallet_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

// TestAll reads the whole ledger page by page, while entries leave the state and new ones arrive.
// Each entry's amount leads from one balance to the next, down to 0.
func TestAll(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	balance := int64(0)
	for amount := range int64(7) {
		adjust(t, s, amount+1)
		balance += amount + 1
	}
	path, query, read := "/api/wallet/transactions/all", "?limit=3", 0
	for keep := 3; ; keep-- {
		body := s.Call(t, apitest.Scenario{As: apitest.Reader, Do: "GET " + path + query}).Body
		var page struct {
			Items      []wallet.Transaction `json:"items"`
			NextCursor *string              `json:"nextCursor"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for _, item := range page.Items {
			if *item.BalanceAfterMicros != balance {
				t.Errorf("the balance was %d, want %d", *item.BalanceAfterMicros, balance)
			}
			balance -= item.AmountMicros
			read++
		}
		if page.NextCursor == nil {
			break
		}
		query = "?limit=3&cursor=" + url.QueryEscape(*page.NextCursor)
		s.Client.Archive(t, store, max(keep, 0))
		adjust(t, s, 100)
	}
	if balance != 0 || read != 8 { // with the initial free grant
		t.Errorf("%d entries read, and %d left", read, balance)
	}
	s.CheckExports(t, path)
	s.Run(t, apitest.Scenario{Name: "another's cursor", As: apitest.Reader,
		Do: "GET " + path + "?cursor=AAAA", Status: 400, Code: "invalid_cursor"})
}
