package wallet_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

// TestSpans lists transactions by time of creation, wherever they are stored.
func TestSpans(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	for amount := range int64(8) {
		if amount%3 != 2 { // some at the same time
			s.Clock.Advance(time.Second)
		}
		adjust(t, s, amount+1)
	}
	var page struct{ Items []wallet.Transaction }
	all := "/api/wallet/transactions/all"
	body := s.Call(t, apitest.Scenario{As: apitest.Reader, Do: "GET " + all}).Body
	if err := json.Unmarshal(body, &page); err != nil || len(page.Items) != 9 {
		t.Fatalf("%v: %s", err, body)
	}
	var entries []string
	var times []time.Time
	for _, item := range page.Items {
		entries = append(entries, item.ID.String())
		times = append(times, time.UnixMilli(int64(item.CreatedAt)).UTC())
	}
	for _, keep := range []int{9, 4, 0} {
		s.Client.Archive(t, store, keep)
		s.CheckSpans(t, "/api/wallet/transactions", entries, times)
		s.CheckSpans(t, all, entries, times)
		lines := s.Call(t, apitest.Scenario{As: apitest.Reader, Do: "GET " + all +
			"?format=jsonl&to=" + times[0].Format(time.RFC3339Nano) + "&from=" +
			times[5].Format(time.RFC3339Nano)}).Body
		want := slices.IndexFunc(times, times[0].After)
		if got := bytes.Count(lines, []byte{'\n'}); got != countSince(times, times[5])-want {
			t.Errorf("%d lines of a span: %s", got, lines)
		}
	}
}

func countSince(times []time.Time, at time.Time) int {
	first := slices.IndexFunc(times, at.After)
	if first < 0 {
		return len(times)
	}
	return first
}
