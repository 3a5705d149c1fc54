package scrapers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/ids"
)

// TestListSorted: by name or age, or within a span, page by page, while scrapers come and go.
func TestListSorted(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	long := strings.Repeat("Ä", 190)
	var made []ids.ID
	var times []time.Time
	newScraper := func(name string) {
		t.Helper()
		a := s.Call(t, apitest.Scenario{As: apitest.User, Do: put,
			Header: key(fmt.Sprint(len(made))), Body: body(group, "name", name)})
		id, err := ids.Parse(a.Text("id"))
		if err != nil {
			t.Fatalf("made: %s", a.Body)
		}
		made, times = append(made, id), append(times, s.Clock.Now())
	}
	for _, name := range []string{"beta", "Ärger", "Alpha", "gamma", "alpha 2", long + "z",
		long + "a"} {
		s.Clock.Advance(time.Second)
		newScraper(name)
	}
	const list = "GET /api/scraper/list?"
	read := func(query string, limit int, between func()) (got string) {
		t.Helper()
		for cursor, more := "", "true"; more == "true"; {
			a := s.Call(t, apitest.Scenario{As: apitest.Reader,
				Do: fmt.Sprintf("%s%s&limit=%d&cursor=%s", list, query, limit, cursor)})
			items, _ := a.At("items")
			if a.Status != 200 {
				t.Fatalf("%s: %s", query, a.Body)
			}
			for i := range items.([]any) {
				id, _ := ids.Parse(a.Text(fmt.Sprintf("items.%d.id", i)))
				got += fmt.Sprint(slices.Index(made, id))
			}
			if more, cursor = a.Text("hasMore"), a.Text("nextCursor"); more == "true" {
				between()
			}
		}
		return got
	}
	at := func(n int) string { return times[n].UTC().Format(time.RFC3339Nano) }
	for query, want := range map[string]string{
		"sort=name": "2403165", "sort=name,desc": "6513042", // equal beginnings: newest first
		"sort=createdAt,desc": "6543210", "sort=createdAt": "0123456",
		"sort=name&q=ALPHA": "24", "from=" + at(2): "65432", "to=" + at(2): "10",
		"from=" + at(1) + "&to=" + at(4):                           "321",
		"from=" + at(4) + "&to=" + at(4):                           "",
		"sort=name&from=" + at(2) + "&to=" + at(5):                 "243",
		"sort=name&hasRunWithin=7d":                                "",
		"sort=name&groupId=" + s.NewGroup(t, "alice", "").String(): "",
	} {
		for limit := 1; limit < 9; limit++ {
			if got := read(query, limit, func() {}); got != want {
				t.Errorf("%s by %d: %s, want %s", query, limit, got, want)
			}
		}
	}
	came := 0
	if got := read("sort=name", 2, func() {
		came++
		s.Clock.Advance(time.Second)
		newScraper(fmt.Sprintf("a%d", came)) // sorts before all that were read
	}); got != "2403165" {
		t.Errorf("while others come: %s", got)
	}
	cursor := s.Call(t, apitest.Scenario{As: apitest.Reader,
		Do: list + "limit=1&sort=name"}).Text("nextCursor")
	for query, field := range map[string]string{"sort=id": "sort", "sort=name,up": "sort",
		"from=" + at(5) + "&to=" + at(2): "from", "to=yesterday": "to"} {
		code := "invalid_request"
		if field == "sort" {
			code = "invalid_sort"
		}
		s.Run(t, apitest.Scenario{Name: query, As: apitest.User, Do: list + query, Status: 400,
			Code: code, Has: map[string]any{"errors.0.field": field}})
	}
	for _, query := range []string{"", "sort=name,desc", "sort=createdAt", "sort=name&q=a",
		"sort=name&from=" + at(2)} {
		s.Run(t, apitest.Scenario{Name: "another read's cursor " + query, As: apitest.User,
			Do: list + query + "&cursor=" + cursor, Status: 400, Code: "invalid_cursor"})
	}
}

func TestList(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
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
		if i != 1 { // two of the same time
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
	for _, keep := range []int{2, 0} { // runs in the state; the others are in the archive
		s.Client.Archive(t, store, keep)
		s.Run(t,
			apitest.Scenario{Name: "ran within hours", As: apitest.Reader,
				Do: list + "?hasRunWithin=24h", Status: 200, Has: names("three"), Lacks: end(1)},
			apitest.Scenario{Name: "ran within weeks", As: apitest.Reader,
				Do: list + "?hasRunWithin=2w&q=t", Status: 200, Has: map[string]any{
					"items.1.lastRunState": "COMPLETED"}, Lacks: end(2)},
		)
	}
	s.Run(t,
		apitest.Scenario{Name: "text", As: apitest.Reader, Do: list + "?q=%C3%A4RGER", Status: 200,
			Has: names("Ärger one"), Lacks: end(1)},
		apitest.Scenario{Name: "group", As: apitest.Reader, Do: list + "?groupId=" + other.String(),
			Status: 200, Has: names("four"), Lacks: end(1)},
		apitest.Scenario{Name: "not a time", As: apitest.Reader, Do: list + "?hasRunWithin=7y",
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: list, Status: 200, Has: names(),
			Lacks: end(0)},
		apitest.Scenario{Name: "limit", As: apitest.Reader, Do: list + "?limit=0", Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "not a cursor", As: apitest.Reader, Do: list + "?cursor=abc",
			Status: 400, Code: "invalid_cursor"},
	)
	// Page by page, each scraper comes once.
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
