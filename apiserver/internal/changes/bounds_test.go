package changes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/work"
)

// A comparison resumes at the next part, and its progress has room for the longest key. If the rows
// have changed, it starts over.
func TestComparisonGoesOnByParts(t *testing.T) {
	r := newRig(t)
	r.part = 2
	var key []string
	for _, c := range "abcde" {
		key = append(key, string(c)+strings.Repeat("<", 1023))
	}
	rows := func(from, to int) (made []string) {
		for n := from; n < to; n++ {
			made = append(made, fmt.Sprintf(`{"%s":%d,"%s":1,"%s":1,"%s":1,"%s":1,"p":"%s"}`,
				key[0], n, key[1], key[2], key[3], key[4], strings.Repeat("<", 50)))
		}
		return made
	}
	r.alert(&client.Alerts{On: []string{"ADDED"}, Key: key})
	r.run(rows(0, 9)...)
	r.work()
	r.run(rows(1, 30)...)
	item, steps := r.open()[0], 1
	outcome, _ := r.step(item)
	early := outcome.Progress
	for ; outcome.End != work.Ended; steps++ {
		if len(outcome.Progress) > work.MaxProgress/4 {
			t.Fatalf("the progress has %d bytes", len(outcome.Progress))
		}
		item.Progress = outcome.Progress
		outcome, _ = r.step(item)
	}
	told := r.told()
	if len(told) != 1 || steps != 5 || told[0].Changes.Added != 21 ||
		told[0].Changes.Removed != 1 || len(told[0].Changes.Examples) != 10 {
		t.Fatalf("%d steps, told %+v", steps, told)
	}
	r.run(rows(0, 9)...)
	item = r.open()[0]
	item.Progress = early
	if outcome, _ = r.step(item); !strings.Contains(string(outcome.Progress), `"part":1,`) {
		t.Errorf("goes on where another comparison was: %.300s", outcome.Progress)
	}
}

// Exactly lookedBack runs are looked at for the comparison.
func TestRunsLookedBackAt(t *testing.T) {
	r := newRig(t)
	r.client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.ids.New(),
		Amount: 100_000_000})
	r.run(rowA)
	r.work()
	for between, wanted := range []int{1, 1} {
		for range 1_999 + between {
			stopped := r.delivered()
			r.client.Must(t, client.StopRun{Customer: "alice", Job: stopped})
			r.client.CloseRun(t, stopped)
		}
		r.run(fmt.Sprintf(`{"sku":"%d"}`, between))
		r.work()
		if told := r.told(); len(told) != wanted {
			t.Fatalf("%d runs between: told %+v", 1_999+between, told)
		}
	}
}

// If the row store fails, it is tried again. After maxTries failures the customer is told.
func TestFailuresAreTold(t *testing.T) {
	r := newRig(t)
	r.run(rowA)
	r.work()
	r.run(rowB)
	item := r.open()[0]
	r.broken = errors.New("disk full at 10.0.0.7")
	item.Failures = 7
	if _, err := r.kind().Step(t.Context(), item); !errors.Is(err, r.broken) ||
		len(r.told()) > 0 {
		t.Fatalf("%v, told %+v", err, r.told())
	}
	item.Failures = 8
	r.step(item)
	told := r.told()
	if len(told) != 1 || told[0].Message != "its rows could not be read" ||
		told[0].Changes != nil {
		t.Errorf("told: %+v", told)
	}
}
