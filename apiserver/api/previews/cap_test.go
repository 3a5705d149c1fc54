package previews_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/model"
)

// TestPreviewsUnderACap: a cap below the price of a page refuses each kind of preview, and nothing
// is charged. The price itself is enough.
func TestPreviewsUnderACap(t *testing.T) {
	const price = 150
	r := start(t)
	fields := `{"url":"https://shop.test/list","fields":["title"]}`
	call := func(do, body string, most int) apitest.Answer {
		return r.Call(t, apitest.Scenario{As: apitest.User, Body: body,
			Do: fmt.Sprint("POST /api/scraper-simple/", do, "?maxChargeMicros=", most)})
	}
	allowed := func(do, body string, most int) {
		t.Helper()
		wait := r.page(t, "text/html", list)
		if a := call(do, body, most); a.Status != 200 {
			t.Errorf("%s for at most %d: %d %s", do, most, a.Status, a.Body)
		}
		wait()
	}
	refused := func(do, body string) {
		t.Helper()
		answer := make(chan apitest.Answer, 1)
		go func() { answer <- call(do, body, price-1) }()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		job := r.AwaitTrial(ctx)
		if job == nil {
			t.Fatalf("%s: no trial was launched", do)
		}
		r.Client.Dispatch(t, job.ID, 0)
		if reason := r.Client.View().Job(job.ID).Reason; reason != model.MaxChargeReached {
			t.Fatalf("%s: its page is fetched, though it costs more than the cap: %s", do, reason)
		}
		r.Client.CloseRun(t, job.ID)
		if a := <-answer; a.Status != http.StatusPaymentRequired ||
			a.Text("code") != "MAX_CHARGE_REACHED" {
			t.Errorf("%s: %d %s", do, a.Status, a.Body)
		}
	}
	for range 5 { // free requests cost nothing
		allowed("preview-from-url", fields, 0)
	}
	left := int64(1_000_000)
	for do, body := range map[string]string{"url-based": r.body(""), "preview-from-url": fields,
		"page": address, "curl-based": fmt.Sprintf(
			`{"name":"goods","groupId":%q,"curl":"curl https://shop.test/list"}`, r.group)} {
		refused(do, body)
		allowed(do, body, price)
		left -= price
		if now := r.Client.View().Wallet("alice").Balance(); now != left {
			t.Errorf("%s: %d micros are left, want %d", do, now, left)
		}
	}
}
