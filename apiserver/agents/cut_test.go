package agents_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/ids"
)

// follow calls a tool until nothing is left and returns a member of each item, in order. between is
// called after the first part, with that of its last item.
func (a *agent) follow(tool string, with args, list, member string, between func(last string)) (
	seen []string) {
	a.t.Helper()
	for calls := 0; ; calls++ {
		got := a.want(tool, with, map[string]any{"error": nil})
		if n := len(got.text) / 4; n > 25_100 {
			a.t.Errorf("%s: about %d tokens", tool, n)
		}
		items, _ := got.At(list)
		for _, item := range items.([]any) {
			seen = append(seen, fmt.Sprint(item.(map[string]any)[member]))
		}
		cursor := got.Text("cursor")
		if cut, _ := got.At("truncated"); (cut == true) != (cursor != "") {
			a.t.Errorf("%s: truncated %v, cursor %q", tool, cut, cursor)
		}
		if cursor == "" {
			if next, _ := got.At("result.nextCursor"); next != nil {
				cursor = next.(string)
			}
		}
		if cursor == "" {
			if calls == 0 {
				a.t.Errorf("%s answers in one part", tool)
			}
			return seen
		}
		if with["cursor"] = cursor; calls == 0 {
			between(seen[len(seen)-1])
		}
	}
}

// longRows are rows of some 300 tokens, numbered from one on.
func longRows(from, count int) (rows []string) {
	for n := range count {
		rows = append(rows, fmt.Sprintf(`{"n":%d,"text":%q}`, from+n, strings.Repeat("word ", 240)))
	}
	return rows
}

// TestCutReadsArePinned: who reads rows in parts sees those that were there at first, each once,
// although others come meanwhile. Each part has the members that its schema requires.
func TestCutReadsArePinned(t *testing.T) {
	for _, order := range []string{"", "n:desc", "n:asc"} {
		r := start(t)
		r.run(t, longRows(1_000, 150)...)
		a := r.connect(t, apitest.Reader, "", nil)
		with := args{"groupId": r.group, "limit": 1_000, "fields": []string{"n", "text"}}
		if order != "" {
			with["sort"] = order
		}
		seen := a.follow("svc_get_data", with, "result.items", "n", func(string) {
			r.run(t, longRows(2_000, 50)...)
			r.run(t, longRows(500, 50)...)
		})
		once := map[string]bool{}
		for _, n := range seen {
			once[n] = true
		}
		if len(seen) != 150 || len(once) != 150 || once["2000"] || once["500"] {
			t.Errorf("sort %q: %d rows, %d different", order, len(seen), len(once))
		}
	}
}

// TestSkippedOnce: the cursor of a cut answer leads on from what was told, and skips nothing again.
func TestSkippedOnce(t *testing.T) {
	r := start(t)
	r.run(t, longRows(1_000, 200)...)
	a := r.connect(t, apitest.Reader, "", nil)
	seen := a.follow("svc_get_data", args{"groupId": r.group, "limit": 1_000, "sort": "n:asc",
		"skip": 20}, "result.items", "n", func(string) {})
	if len(seen) != 180 || seen[0] != "1020" {
		t.Errorf("%d rows from %s", len(seen), seen[0])
	}
}

// TestCutListsGoOn: a list without a cursor of its own goes on behind the item that was told last,
// wherever that is meanwhile. If it is gone, nobody knows where to go on.
func TestCutListsGoOn(t *testing.T) {
	r := start(t)
	var groups []ids.ID
	for n := range 400 {
		groups = append(groups, r.NewGroup(t, "alice", fmt.Sprintf("%04d %s", n,
			strings.Repeat("name ", 50))))
	}
	remove := func(group ids.ID) {
		deletion := client.Deletion{Customer: "alice", Operation: client.OpDeleteGroup,
			Target: group}
		r.Client.Must(t, client.PreviewDelete{Deletion: deletion, Token: group.String()})
		r.Client.Must(t, client.DeleteGroup{Deletion: deletion, Token: group.String()})
	}
	a := r.connect(t, apitest.Reader, "", nil)
	seen := a.follow("svc_list_groups", args{}, "result", "id", func(last string) {
		groups = slices.DeleteFunc(groups, func(group ids.ID) bool {
			return group.String() == last // it stays
		})
		for _, group := range groups[:10] { // some stand before the cut, in any order
			remove(group)
		}
		groups = groups[10:]
		for n := range 5 {
			r.NewGroup(t, "alice", fmt.Sprintf("%04d", n))
			r.NewGroup(t, "alice", fmt.Sprintf("9%04d", n))
		}
	})
	count := map[string]int{}
	for _, id := range seen {
		count[id]++
	}
	for _, group := range groups {
		if count[group.String()] != 1 {
			t.Fatalf("group %s is told %d times", group, count[group.String()])
		}
	}
	with := args{}
	got := a.want("svc_list_groups", with, map[string]any{"error": nil})
	list, _ := got.At("result")
	told := list.([]any)
	last, err := ids.Parse(fmt.Sprint(told[len(told)-1].(map[string]any)["id"]))
	if err != nil {
		t.Fatal(err)
	}
	remove(last)
	with["cursor"] = got.Text("cursor")
	a.refused("svc_list_groups", with, "invalid_cursor")
}

// TestChangedItemsAreNotMixed: the parts of one long item are of one and the same text.
func TestChangedItemsAreNotMixed(t *testing.T) {
	r := start(t)
	long := func(n int) string {
		var row strings.Builder
		for i := range 100 {
			fmt.Fprintf(&row, `"member %d":%q,`, i, strings.Repeat("word ", 400))
		}
		return "{" + row.String() + fmt.Sprintf(`"n":%d}`, n)
	}
	r.run(t, long(1))
	a := r.connect(t, apitest.Reader, "", nil)
	with := args{"groupId": r.group, "sort": "n:desc"}
	got := a.want("svc_get_data", with, map[string]any{"error": nil, "truncated": true})
	r.run(t, long(2)) // it comes first now
	with["cursor"] = got.Text("cursor")
	a.refused("svc_get_data", with, "invalid_cursor")
}

// sampled has a sample of every key.
type sampled struct {
	cache.Values
	rows []string
}

func (v sampled) Get(context.Context, string) ([]byte, bool) {
	return []byte(`{"rows":[` + strings.Join(v.rows, ",") + `]}`), true
}

// TestPaidSamplesAreReadOn: whoever has paid for a long sample can read all of it, from the cache.
func TestPaidSamplesAreReadOn(t *testing.T) {
	r := start(t, func(config *apiserver.Config) {
		config.Values = sampled{rows: longRows(1_000, 150)}
	})
	a := r.connect(t, apitest.LLM, "", nil)
	seen := a.follow("svc_get_scraper_sample_data", args{"id": r.scraper, "useCache": true,
		"maxChargeMicros": 500}, "result", "n", func(string) {})
	if len(seen) != 150 || seen[0] != "1000" || seen[149] != "1149" {
		t.Errorf("%d rows", len(seen))
	}
}
