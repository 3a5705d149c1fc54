package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/demo"
	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// serveDemo plays the service over the fake API: it is ready at once and runs until it is stopped.
func (b *shell) serveDemo(ctx context.Context, config service.Config) error {
	if config.HostRate != 1 || config.MaxHostRate != demo.DemoRate || len(config.Origins) != 1 ||
		len(config.EgressAllow) != 1 || config.Once == nil {
		return fmt.Errorf("config %+v", config)
	}
	if err := os.WriteFile(filepath.Join(config.Data, datadir.KeyFile), []byte(apitest.Key),
		0o600); err != nil {
		return err
	}
	config.Ready(strings.TrimPrefix(b.api.URL, "http://"))
	<-ctx.Done()
	return nil
}

func TestDemoRunsTwice(t *testing.T) {
	b := newShell(t)
	b.api.Outcome = apitest.Job("COMPLETED", nil)
	b.api.Rows = []string{`{"title":"Kettle","price":"19.00","_sourceUrl":"http://amber-home.example/0"}`}
	b.api.Frames = [][]string{{`{"state":"SUCCESS","itemsQuantity":1940,"totalRequests":2000,"totalLinks":2000}`}}
	b.api.Entries = []map[string]any{{"type": "CHARGE", "status": "SETTLED",
		"amountMicros": -290250, "jobId": apitest.RunID,
		"lines": []map[string]any{{"label": "Plain", "pages": 1935, "freePages": 5,
			"unitPriceMicros": 150}}}}
	first := b.demo()
	first.want(t, terminal.ExitOK, "demo credit of 10.00 EUR", "2,000 pages of 40 hosts",
		"100% of 2,000", "COMPLETED", "Kettle",
		"Ledger: CHARGE SETTLED  -0.29025 EUR  (1,935 × 0.00015 EUR Plain, 5 free)",
		"Balance 10.00 EUR", apitest.Key,
		"curl -X POST '"+b.api.URL+"/api/scraper/url-list-run?groupId=",
		"--job "+apitest.RunID+" --format csv",
		"Portal   "+b.api.URL+"/portal", "  "+b.api.URL+"/sign-in/once?link=",
		"Serving until Ctrl-C", "Stopped.")
	if strings.Contains(first.err, "Found from earlier") {
		t.Error("the first demo finds data")
	}
	if account := b.api.Bodies["POST /api/admin/accounts"]; !strings.Contains(account,
		`"email":"demo@shoal.example"`) {
		t.Errorf("the demo's account is %s", account)
	}
	if lines := strings.Count(b.api.Bodies["POST /api/scraper/url-list-run"],
		"\n"); lines != demo.DemoPages {
		t.Errorf("%d addresses", lines)
	}
	b.api.AddGroup("another", "demo") // names may be equal
	second := b.demo()
	second.want(t, terminal.ExitOK,
		`Found from earlier: 1 run, 1 row in group "demo", balance 10.00 EUR`)
	if strings.Contains(second.err, "demo credit") || len(b.api.Scrapers) != 1 {
		t.Errorf("the second demo starts anew:\n%s", second.err)
	}
}

// demo runs the demo and interrupts it once it has printed everything.
func (b *shell) demo() result {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	b.run = b.serveDemo
	b.said = func(text string) {
		if strings.Contains(text, "Serving until Ctrl-C") {
			interrupt()
		}
	}
	return b.shoalIn(ctx, "demo")
}

func TestDemoSaysWhyItCannotServe(t *testing.T) {
	b := newShell(t)
	b.run = func(context.Context,
		service.Config) error {
		return fmt.Errorf("listen: address in use")
	}
	b.shoal("demo").want(t, terminal.ExitFailed, "address in use")
}
