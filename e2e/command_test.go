package e2e

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/process"
)

// TestDemo runs the demo twice; the second run finds the data of the first.
func TestDemo(t *testing.T) {
	data := t.TempDir()
	for range 2 {
		p, err := process.Start(process.Config{Binary: binary(t), Command: "demo", Data: data})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		ctx := suite.Within(t, suite.Patience)
		if err := p.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(p.Said(), "curl") { // the last line of its output
			select {
			case <-p.Ended():
				t.Fatalf("the demo ended: %s", p.Said())
			case <-ctx.Done():
				t.Fatalf("the demo does not end its run: %s", p.Said())
			case <-time.After(10 * time.Millisecond):
			}
		}
		who := suite.Client{Server: p.Server(), Token: p.Key()}
		suite.CheckWallet(t, who)
		if jobs := suite.Must(who.Jobs(ctx, ""))(t); jobs[0].State != "COMPLETED" ||
			jobs[0].TotalRequests != 2000 {
			t.Errorf("%+v", jobs[0])
		}
		if _, err := p.Stop(suite.StopLimit); err != nil {
			t.Fatal(err)
		}
	}
}
