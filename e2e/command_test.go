package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/testkit/process"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

// TestCommandLine does the main job as a user at a terminal does.
func TestCommandLine(t *testing.T) {
	web := newWeb(t, rough(20, 5))
	s := newService(t, web, fast...)
	run := func(args ...string) string {
		t.Helper()
		return must(s.p.Command(within(t, patience), args...))(t)
	}
	run("wallet", "adjust", "--micros", "1000000", "--note", "for a test")
	urls := slices.Collect(web.URLs(100))
	list := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(list, []byte(strings.Join(urls, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--url-file", list, "--follow"}
	for _, field := range synthweb.ProductFields() {
		text := field.Name + "=" + field.Selector
		switch {
		case field.Attr != "":
			text += "@" + field.Attr
		case field.Kind == "EXISTS":
			text += "?"
		}
		args = append(args, "--field", text)
	}
	job, _, _ := strings.Cut(run(args...), "\n")
	var rows []map[string]any
	for line := range strings.Lines(run("rows", "--job", job, "--format", "jsonl")) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	reported := must(s.report(within(t, patience), launched{JobID: job}))(t)
	reported.Rows = rows
	t.Log(check(t, s.expected(productOrder(s.client, urls)), reported))
	for _, args := range [][]string{{"jobs"}, {"job", job}, {"job", job, "--errors"}, {"wallet"}, {"status"},
		{"billing", "recount"}, {"rows", "--job", job, "--format", "csv"}} {
		if run(args...) == "" {
			t.Errorf("shoal %s says nothing", strings.Join(args, " "))
		}
	}
}

// TestDemo shows the first run, and finds its data again.
func TestDemo(t *testing.T) {
	data := t.TempDir()
	for range 2 {
		p, err := process.Start(process.Config{Binary: binary(t), Command: "demo", Data: data})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		ctx := within(t, patience)
		if err := p.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(p.Said(), "curl") { // the last thing that it says
			select {
			case <-p.Ended():
				t.Fatalf("the demo ended: %s", p.Said())
			case <-ctx.Done():
				t.Fatalf("the demo does not end its run: %s", p.Said())
			case <-time.After(10 * time.Millisecond):
			}
		}
		who := client{server: p.Server(), token: p.Key()}
		checkWallet(t, who)
		if jobs := must(who.jobs(ctx, ""))(t); jobs[0].State != "COMPLETED" || jobs[0].TotalRequests != 2000 {
			t.Errorf("%+v", jobs[0])
		}
		if _, err := p.Stop(stopLimit); err != nil {
			t.Fatal(err)
		}
	}
}
