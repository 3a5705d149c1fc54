package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
)

// planOf is a catalogue in which PRO costs that many euros.
func planOf(euros int64) string {
	return fmt.Sprintf(`[{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": [],
		"limits": {}}, {"plan": "PRO", "level": 1, "monthlyPrice": %d, "offered": true,
		"features": ["API"], "limits": {"MAX_GROUPS": %d}}]`, euros, euros)
}

// setPlans sets them as an operator.
func setPlans(ctx context.Context, admin suite.Client, euros int64) error {
	return admin.Call(ctx, "PUT", "/api/admin/settings", nil,
		map[string]any{"plans": json.RawMessage(planOf(euros))}, nil)
}

// planPrice returns PRO's price, and checks that its features match: they are set together.
func planPrice(t *testing.T, admin suite.Client) int64 {
	t.Helper()
	var said struct {
		Plans []struct {
			MonthlyPrice int64
			Limits       map[string]int64
		}
	}
	if err := admin.Call(suite.Within(t, suite.Patience), "GET", "/api/admin/settings", nil, nil,
		&said); err != nil {
		t.Fatal(err)
	}
	if len(said.Plans) != 2 || said.Plans[1].Limits["MAX_GROUPS"] != said.Plans[1].MonthlyPrice {
		t.Fatalf("the plans are %+v", said)
	}
	return said.Plans[1].MonthlyPrice
}

// TestCrashesOfPlans kills the process while an operator changes plans, at different commands. An
// answered change holds, an unanswered one is complete or absent, and no file restores another.
func TestCrashesOfPlans(t *testing.T) {
	t.Parallel()
	const file, other = 7, 9 // euros
	dir := t.TempDir()
	plans := filepath.Join(dir, "plans.json")
	write := func(euros int64) {
		t.Helper()
		if err := os.WriteFile(plans, []byte(planOf(euros)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file)
	args := []string{"--no-rate-limits", "--raft-snapshot-entries", "10", "--plans", plans}
	c := &crashCase{service: &service{single: newSingle(t, args)}}
	c.Service = &suite.Service{T: t, Product: c.single, Args: args}
	c.bring()
	if now := planPrice(t, c.Admin()); now != file {
		t.Fatalf("the file says %d, the plans %d", file, now)
	}
	write(other)
	held := int64(file)
	for n, point := range []string{"raft.before_apply:60", "raft.after_apply:60",
		"raft.before_apply:67", "raft.after_apply:73", "raft.after_snapshot:4"} {
		c.p.Kill()
		c.bring(crash.At + "=" + point)
		admin := c.Admin()
		if now := planPrice(t, admin); now != held {
			t.Fatalf("%s: a start changed %d to %d", point, held, now)
		}
		ctx, next := suite.Within(t, suite.Patience), int64(1000*(n+1))
		for setPlans(ctx, admin, next) == nil {
			held, next = next, next+1
		}
		if !c.buried() {
			t.Fatalf("the process survives %s", point)
		}
		c.bring()
		now := planPrice(t, c.Admin())
		if now != held && now != next {
			t.Errorf("%s: %d euros were answered, %d asked for, and it is %d", point, held, next,
				now)
		}
		held = now
	}
	logged, err := os.ReadFile(filepath.Join(c.data, "shoal.log"))
	if err != nil || !strings.Contains(string(logged), "--plans does not count") {
		t.Errorf("the process does not say that its file does not count: %v", err)
	}
	if out, err := c.Command(suite.Within(t, suite.Patience), "audit", "verify"); err != nil {
		t.Errorf("the trail: %v\n%s", err, out)
	}
}
