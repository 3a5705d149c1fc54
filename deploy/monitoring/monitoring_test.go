package monitoring_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// metric is a line of the golden list of metrics.
type metric struct {
	kind   string
	labels []string
}

// listed reads the golden list, which a test of cmd/shoal keeps true, and adds the metrics of
// Prometheus and its Go client.
func listed(t *testing.T) map[string]metric {
	t.Helper()
	data, err := os.ReadFile("../../cmd/shoal/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{"up": {kind: "gauge"}, "process_cpu_seconds_total": {kind: "counter"},
		"process_resident_memory_bytes": {kind: "gauge"}, "go_goroutines": {kind: "gauge"}}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		m := metric{kind: fields[1]}
		if len(fields) == 3 {
			m.labels = strings.Split(fields[2], ",")
		}
		if m.kind == "histogram" {
			all[fields[0]+"_count"], all[fields[0]+"_sum"] = m, m
			m.labels = append(slices.Clone(m.labels), "le")
			all[fields[0]+"_bucket"] = m
			continue
		}
		all[fields[0]] = m
	}
	if len(all) < 50 {
		t.Fatalf("only %d metrics are listed", len(all))
	}
	return all
}

// rules is a file of alert rules.
type rules struct {
	Groups []struct {
		Rules []rule
	}
}

type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file rules
	read(t, "alerts.yml", func(data []byte) error { return yaml.Unmarshal(data, &file) })
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func read(t *testing.T, name string, into func([]byte) error) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = into(data)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// queries returns the dashboard's expressions, by the panel's title.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	read(t, "dashboard.json", func(data []byte) error { return json.Unmarshal(data, &dashboard) })
	all := map[string][]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all[panel.Title] = append(all[panel.Title], target.Expr)
		}
	}
	for _, annotation := range dashboard.Annotations.List {
		all[annotation.Name] = append(all[annotation.Name], annotation.Expr)
	}
	return all
}

var (
	names    = regexp.MustCompile(`\b(?:up|(?:shoal|go|process)_[a-z0-9_]+)\b`)
	selector = regexp.MustCompile(`\b(up|(?:shoal|go|process)_[a-z0-9_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|without|on)\s*\(([^)]*)\)`)
)

// fromOutside are labels that scraping adds.
var fromOutside = []string{"instance", "job"}

// checkQuery returns which parts of a query do not exist.
func checkQuery(query string, known map[string]metric) (problems []string) {
	labels := slices.Clone(fromOutside)
	for _, name := range names.FindAllString(query, -1) {
		m, ok := known[name]
		if !ok {
			problems = append(problems, "there is no metric "+name)
		}
		labels = append(labels, m.labels...)
	}
	for _, selected := range selector.FindAllStringSubmatch(query, -1) {
		for _, label := range matcher.FindAllStringSubmatch(selected[2], -1) {
			if !slices.Contains(append(slices.Clone(fromOutside), known[selected[1]].labels...),
				label[1]) {
				problems = append(problems, selected[1]+" has no label "+label[1])
			}
		}
	}
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(labels, label) {
				problems = append(problems, "nothing in it has the label "+label)
			}
		}
	}
	return problems
}

func TestCheckQuerySeesWhatIsWrong(t *testing.T) {
	known := listed(t)
	for query, right := range map[string]bool{
		`sum by (topic) (rate(shoal_stream_errors_total{topic="pages",instance=~"a"}[5m]))`:           true,
		`histogram_quantile(0.9, sum by (le) (rate(shoal_ingest_batch_seconds_bucket[5m])))`:          true,
		`rate(shoal_ingest_batch_seconds[5m])`:                                                        false,
		`shoal_no_such_thing_total`:                                                                   false,
		`sum by (tier) (rate(shoal_stream_errors_total[5m]))`:                                         false,
		`shoal_stream_errors_total{tier="plain"}`:                                                     false,
		`shoal_stream_errors_total{instance="a"} / shoal_fetcher_pages_total{tier="plain",topic="a"}`: false,
	} {
		if problems := checkQuery(query, known); (len(problems) == 0) != right {
			t.Errorf("%s: %v", query, problems)
		}
	}
}

// TestOnlyMetricsThatExistAreAskedFor keeps dashboard and rules from rotting.
func TestOnlyMetricsThatExistAreAskedFor(t *testing.T) {
	known := listed(t)
	used := ""
	for title, all := range queries(t) {
		for _, query := range all {
			used += query + "\n"
			for _, problem := range checkQuery(query, known) {
				t.Errorf("dashboard, %q: %s", title, problem)
			}
		}
	}
	for _, rule := range alerts(t) {
		for _, problem := range checkQuery(rule.Expr, known) {
			t.Errorf("%s: %s", rule.Alert, problem)
		}
	}
	// Every metric of a hop is on a panel.
	for name, m := range known {
		if m.kind != "histogram" && !strings.Contains(used, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestMoneyIsShownInEuros: every money metric, which counts millionths of a euro, is divided by a
// million where it is shown.
func TestMoneyIsShownInEuros(t *testing.T) {
	shown := 0
	for title, all := range queries(t) {
		for _, query := range all {
			if !strings.Contains(query, "_micros") {
				continue
			}
			shown++
			if !strings.HasSuffix(query, "/ 1e6") {
				t.Errorf("dashboard, %q: %s is not divided by 1e6", title, query)
			}
		}
	}
	if shown == 0 {
		t.Error("no panel shows money")
	}
}

// ruleTests are the files of the rules' own tests.
var ruleTests = []string{"rules_test.yml", "rules_of_hours_test.yml"}

// TestAlertsAreComplete: every alert has a severity, a summary, its runbook's address, and tests of
// it both firing and silent.
func TestAlertsAreComplete(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range ruleTests {
		var file struct {
			Tests []struct {
				Checks []struct {
					Alert    string `yaml:"alertname"`
					Expected []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		read(t, name, func(data []byte) error { return yaml.Unmarshal(data, &file) })
		for _, test := range file.Tests {
			for _, check := range test.Checks {
				if len(check.Expected) > 0 {
					fires[check.Alert] = true
				} else {
					silent[check.Alert] = true
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, rule := range alerts(t) {
		if seen[rule.Alert] {
			t.Errorf("%s stands twice", rule.Alert)
		}
		seen[rule.Alert] = true
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		if rule.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", rule.Alert)
		}
		if want := "https://shoal.dev/shoal/docs/operations/" + rule.Alert +
			".md"; rule.Annotations["runbook_url"] != want {
			t.Errorf("%s has the runbook %q, want %q", rule.Alert, rule.Annotations["runbook_url"],
				want)
		}
		if !fires[rule.Alert] || !silent[rule.Alert] {
			t.Errorf("%s: tested firing %v, silent %v", rule.Alert, fires[rule.Alert],
				silent[rule.Alert])
		}
	}
	for name := range fires {
		if !seen[name] {
			t.Errorf("the tests know %s, which is no alert", name)
		}
	}
}

// TestRunbooks: each alert has a complete runbook, each runbook an alert, and all of them are in
// the index.
func TestRunbooks(t *testing.T) {
	const folder = "../../docs/operations"
	var index string
	read(t, filepath.Join(folder, "README.md"),
		func(data []byte) error { index = string(data); return nil })
	known := map[string]bool{}
	for _, rule := range alerts(t) {
		known[rule.Alert] = true
		var runbook string
		read(t, filepath.Join(folder, rule.Alert+".md"),
			func(data []byte) error { runbook = string(data); return nil })
		at := 0
		for _, part := range []string{"# " + rule.Alert, "## Meaning", "## What users see",
			"## First look", "## Mend", "## After"} {
			found := strings.Index(runbook[at:], part+"\n\n")
			if found < 0 {
				t.Fatalf("%s.md has no %q where it belongs", rule.Alert, part)
			}
			at += found + len(part)
		}
		if line := "| [" + rule.Alert + "](" + rule.Alert + ".md) | " + rule.Labels["severity"] +
			" |"; !strings.Contains(index, line) {
			t.Errorf("the index of the runbooks has no line %q", line)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "Shoal*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); !known[name] {
			t.Errorf("%s is of no alert", file)
		}
	}
}

// TestPromtool runs Prometheus's own tool on the rules, their tests and every query of the
// dashboard. It needs the tool: `make alerts` sets PROMTOOL to it.
func TestPromtool(t *testing.T) {
	promtool := os.Getenv("PROMTOOL")
	if promtool == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("PROMTOOL is not set")
		}
		t.Skip("PROMTOOL is not set")
	}
	run := func(arguments ...string) {
		t.Helper()
		if out, err := exec.Command(promtool, arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
	run("check", "rules", "alerts.yml")
	run(append([]string{"test", "rules"}, ruleTests...)...)

	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*")
	for _, all := range queries(t) {
		for _, query := range all {
			records = append(records, record{Record: "query", Expr: variables.Replace(query)})
		}
	}
	data, err := yaml.Marshal(map[string]any{
		"groups": []map[string]any{{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run("check", "rules", "--lint=none", path)
}
