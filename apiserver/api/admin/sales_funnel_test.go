package admin_test

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// TestSalesFunnel: the clock begins on Friday, 2 January 2026, in the first ISO week of the year.
// That week began in 2025.
func TestSalesFunnel(t *testing.T) {
	s := apitest.Start(t)
	const funnel = "GET /api/admin/sales-funnel"
	open := func(ref string) {
		s.Client.Must(t, client.OpenCustomer{Customer: ref, Entry: s.IDs.New()})
	}
	scraper := func(ref string) client.PutScraper {
		put := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: ref,
			Group: s.NewGroup(t, ref, "g"),
			Spec:  model.Scraper{Name: "shop", Type: model.SingleProduct}}
		s.Client.Must(t, put)
		return put
	}
	pay := func(ref, session string) {
		s.Client.Must(t, client.PayTopUp{Session: session, Customer: ref, Amount: 5,
			Entry: s.IDs.New(), Payment: session})
	}
	week := func(name, starts string, counts ...int) map[string]any {
		return map[string]any{"week": name, "startsOn": starts, "signedUp": counts[0],
			"madeScraper": counts[1], "launchedRun": counts[2], "toppedUp": counts[3],
			"toppedUpTwice": counts[4]}
	}
	answers := func(name, query string, weeks ...map[string]any) apitest.Scenario {
		sc := apitest.Scenario{Name: name, As: apitest.Admin, Do: funnel + query, Status: 200,
			Has: map[string]any{}, Lacks: []string{fmt.Sprintf("weeks.%d", len(weeks))}}
		for i, w := range weeks {
			sc.Has[fmt.Sprintf("weeks.%d", i)] = w
		}
		return sc
	}
	s.Run(t,
		apitest.Scenario{Name: "nobody", Do: funnel, Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: funnel, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "nor is every sign-in", As: apitest.SignIn, Do: funnel,
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "no week", As: apitest.Admin, Do: funnel + "?weeks=0",
			Status: 400, Has: map[string]any{"errors.0.field": "weeks"}},
		apitest.Scenario{Name: "too many", As: apitest.Admin, Do: funnel + "?weeks=105",
			Status: 400, Has: map[string]any{"errors.0.field": "weeks"}},
	)
	open("root") // otherwise its first call would open it
	first := len(s.Client.View().Customers())
	open("only here")
	open("scrapes")
	scraper("scrapes")
	open("runs")
	s.Client.Must(t, client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: "runs",
		Scraper: scraper("runs").ID, List: s.IDs.New(), Links: 1,
		Tiers: model.TiersOf(model.Plain)})
	open("pays")
	pay("pays", "1")
	open("pays twice")
	pay("pays twice", "2")
	pay("pays twice", "3")
	s.Client.Must(t, client.AdjustWallet{Customer: "only here", Entry: s.IDs.New(), Amount: 5})
	friday := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Run(t, answers("one week", "", week("2026-W01", "2025-12-29", first+5, 2, 1, 2, 1)))

	sunday := time.Date(2026, 1, 4, 23, 59, 59, 999_000_000, time.UTC)
	s.Clock.Advance(sunday.Sub(friday))
	open("on sunday")
	s.Clock.Advance(time.Millisecond)
	open("on monday")
	admin := func() string { // the earlier token has expired
		text, err := apiserver.MintToken(s.DataDir, "root", true, s.Clock.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	answersLater := func(name, query string, weeks ...map[string]any) {
		t.Helper()
		sc := answers(name, query, weeks...)
		sc.As = admin()
		s.Run(t, sc)
	}
	oldest := week("2026-W01", "2025-12-29", first+6, 2, 1, 2, 1)
	answersLater("a week begins on Monday", "", week("2026-W02", "2026-01-05", 1, 0, 0, 0, 0),
		oldest)
	s.Clock.Advance(14 * 24 * time.Hour)
	pay("on monday", "4")
	empty := week("2026-W04", "2026-01-19", 0, 0, 0, 0, 0)
	answersLater("weeks of nobody", "", empty, week("2026-W03", "2026-01-12", 0, 0, 0, 0, 0),
		week("2026-W02", "2026-01-05", 1, 0, 0, 1, 0), oldest)
	answersLater("fewer than there are", "?weeks=1", empty)
	s.Clock.Advance(100 * 7 * 24 * time.Hour) // 103 weeks after the first
	all := answers("the oldest of all weeks", "")
	all.Has, all.Lacks = map[string]any{"weeks.0.week": "2027-W51",
		"weeks.50.week": "2027-W01", "weeks.51.week": "2026-W53", "weeks.103": oldest},
		[]string{"weeks.104"}
	all.As = admin()
	s.Run(t, all)
	s.Clock.Advance(7 * 24 * time.Hour)
	all.Name, all.As = "it is beyond the bound", admin()
	all.Has = map[string]any{"weeks.0.week": "2027-W52",
		"weeks.103": week("2026-W02", "2026-01-05", 1, 0, 0, 1, 0)}
	s.Run(t, all)
}
