package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMatchFinds(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	pairs := "COL title VAL lumen tv lx-43u7 COL price VAL 1 \tCOL title VAL Lumen LX43U7 \t1\n" +
		"COL title VAL a spoon \tCOL title VAL Lumen LX43U7 \t0\n"
	file := filepath.Join(dir, "shop", "test.txt")
	if err := os.WriteFile(file, []byte(pairs), 0o600); err != nil {
		t.Fatal(err)
	}
	report := NewReport("match", "test", "test")
	on := &Bench{Say: t.Logf}
	m := &Match{Products: 3_000, Rows: 2_000, Sample: 50, Pairs: dir}
	if err := m.Measure(t.Context(), on, report); err != nil {
		t.Fatal(err)
	}
	for _, aim := range report.Aims {
		if !aim.Met {
			t.Errorf("%s: %v %s", aim.What, aim.Measured, aim.Unit)
		}
	}
	if text := report.Text(); !strings.Contains(text, "shop") {
		t.Error(text)
	}
	m.Pairs = t.TempDir()
	if err := m.Measure(t.Context(), on, report); err == nil {
		t.Error("a directory without pairs is taken")
	}
}
