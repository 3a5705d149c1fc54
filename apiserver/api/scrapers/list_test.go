package scrapers_test

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/ids"
)

func TestList(t *testing.T) {
	s := apitest.Start(t)
	group, other := s.NewGroup(t, "alice", "g"), s.NewGroup(t, "alice", "h")
	var made []ids.ID
	for i, name := range []string{"Ärger one", "two", "three", "four"} {
		in := group
		if i == 3 {
			in = other
		}
		a := s.Call(t, apitest.Scenario{As: apitest.User, Do: put, Header: key(fmt.Sprint(i)),
			Body: body(in, "name", name)})
		id, err := ids.Parse(a.Text("id"))
		if err != nil {
			t.Fatalf("made: %s", a.Body)
		}
		made = append(made, id)
		if i != 1 { // two of one moment
			s.Clock.Advance(time.Second)
		}
	}
	deliver(t, s, made[1], 1)
	s.Clock.Advance(7 * 24 * time.Hour)
	deliver(t, s, made[2], 1)
	const list = "GET /api/scraper/list"
	names := func(names ...string) map[string]any {
		has := map[string]any{"hasMore": false, "nextCursor": nil}
		for i, name := range names {
			has[fmt.Sprintf("items.%d.name", i)] = name
		}
		return has
	}
	end := func(n int) []string { return []string{fmt.Sprintf("items.%d", n)} }
	s.Run(t,
		apitest.Scenario{Name: "text", As: apitest.Reader, Do: list + "?q=%C3%A4RGER", Status: 200,
			Has: names("Ärger one"), Lacks: end(1)},
		apitest.Scenario{Name: "group", As: apitest.Reader, Do: list + "?groupId=" + other.String(),
			Status: 200, Has: names("four"), Lacks: end(1)},
		apitest.Scenario{Name: "ran within hours", As: apitest.Reader,
			Do: list + "?hasRunWithin=24h", Status: 200, Has: names("three"), Lacks: end(1)},
		apitest.Scenario{Name: "ran within weeks", As: apitest.Reader,
			Do: list + "?hasRunWithin=2w&q=t", Status: 200, Lacks: end(2)},
		apitest.Scenario{Name: "not a time", As: apitest.Reader, Do: list + "?hasRunWithin=7y",
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: list, Status: 200, Has: names(),
			Lacks: end(0)},
		apitest.Scenario{Name: "limit", As: apitest.Reader, Do: list + "?limit=0", Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "not a cursor", As: apitest.Reader, Do: list + "?cursor=abc",
			Status: 400, Code: "invalid_cursor"},
	)
	// Page by page, everything comes once.
	seen, cursor := []string{}, ""
	for range 10 {
		a := s.Call(t, apitest.Scenario{As: apitest.Reader, Do: list + "?limit=1&cursor=" + cursor})
		seen = append(seen, a.Text("items.0.id"))
		if a.Text("hasMore") == "false" {
			break
		}
		cursor = a.Text("nextCursor")
	}
	all := map[string]bool{}
	for _, id := range seen {
		all[id] = true
	}
	if len(seen) != 4 || len(all) != 4 || seen[0] != made[3].String() ||
		seen[3] != made[0].String() {
		t.Errorf("pages gave %v of %v", seen, made)
	}
	s.Run(t, apitest.Scenario{Name: "another read's cursor", As: apitest.Reader,
		Do: list + "?limit=1&q=o&cursor=" + cursor, Status: 400,
		Code: "invalid_cursor"})
}
