package apiserver_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/rules/ecb"
)

// waitingRates are rates that do not come before the call for them ends.
type waitingRates struct{ asked, ended chan struct{} }

func (r *waitingRates) Table(ctx context.Context) *ecb.Table {
	for _, told := range []chan struct{}{r.asked, r.ended} {
		select {
		case told <- struct{}{}:
		default: // it was told before
		}
		<-ctx.Done()
	}
	return ecb.Bundled()
}

// TestComputingEndsWithItsCaller hangs up while a call computes. The call ends.
func TestComputingEndsWithItsCaller(t *testing.T) {
	const rule = `{"kind":"CURRENCY_CONVERT","sourceField":"a","outputField":"b",` +
		`"params":{"from":"EUR","to":"USD"}}`
	for path, body := range map[string]string{
		"/api/scraper/preview-rule": `{"rule":` + rule + `,"sampleValue":1}`,
		"/api/scraper-simple/page/pick": `{"url":"https://shop.test/","type":"SINGLE_PRODUCT",` +
			`"itemsConfig":[{"name":"a","selector":"p","kind":"TEXT"}],"postProcessRules":[` + rule + `]}`,
	} {
		rates := &waitingRates{make(chan struct{}, 1), make(chan struct{}, 1)}
		s := apitest.Start(t, func(config *apiserver.Config) { config.ExchangeRates = rates })
		ctx, hangUp := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, "POST", s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+s.Secrets[apitest.User])
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if answer, err := http.DefaultClient.Do(request); err == nil {
				_ = answer.Body.Close()
				t.Errorf("%s: %s, though nobody waited", path, answer.Status)
			}
		}()
		<-rates.asked
		hangUp()
		<-answered
		for ended := false; !ended; {
			select {
			case <-rates.ended:
				ended = true
			default:
				s.Clock.Advance(time.Second)
				runtime.Gosched()
			}
		}
	}
}
