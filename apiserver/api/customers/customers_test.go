package customers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

const ann = `{"firstname":"Ann","lastname":"Smith","email":"ann@shop.test","agreeWithTerms":true}`

func TestSignUp(t *testing.T) {
	s := apitest.Start(t)
	const do = "POST /api/customer"
	body := func(email, agree string) string {
		return fmt.Sprintf(`{"firstname":"Ann","lastname":"S","email":%q,"agreeWithTerms":%s}`,
			email, agree)
	}
	s.Run(t,
		apitest.Scenario{Name: "no credential", Do: do, Body: ann, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "a key", As: apitest.User, Do: do, Body: ann, Status: 403,
			Code: "sign_in_required"},
		apitest.Scenario{Name: "an admin for a customer", As: apitest.Admin, Do: do, Body: ann,
			Header: map[string]string{"X-Customer-Ref": "bob"}, Status: 403,
			Code: "sign_in_required"},
		apitest.Scenario{Name: "everything missing", As: apitest.SignIn, Do: do, Body: `{}`,
			Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "firstname", "errors.1.field": "lastname",
				"errors.2.field": "email", "errors.3.field": "agreeWithTerms"}},
		apitest.Scenario{Name: "blank name", As: apitest.SignIn, Do: do, Status: 400,
			Body: strings.Replace(ann, "Smith", " ", 1), Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "lastname"}},
		apitest.Scenario{Name: "long name", As: apitest.SignIn, Do: do, Status: 400,
			Body: strings.Replace(ann, "Smith", strings.Repeat("é", 101), 1),
			Code: "invalid_request", Has: map[string]any{"errors.0.field": "lastname"}},
		apitest.Scenario{Name: "terms refused", As: apitest.SignIn, Do: do,
			Body: body("ann@shop.test", "false"), Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "agreeWithTerms"}},
		apitest.Scenario{Name: "misspelt member", As: apitest.SignIn, Do: do, Status: 400,
			Body: strings.Replace(ann, "{", `{"firstName":"A",`, 1), Code: "unknown_field",
			Has: map[string]any{"errors.0.field": "firstName"}},
	)
	for _, address := range []string{"", "ann", "Ann <ann@shop.test>", "ann@shop.test, b@x.test",
		"a b@shop.test", strings.Repeat("a", 250) + "@x.test"} {
		s.Run(t, apitest.Scenario{Name: "address " + address, As: apitest.SignIn, Do: do,
			Body: body(address, "true"), Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "email"}})
	}
	key := map[string]string{"Idempotency-Key": "one"}
	s.Run(t,
		apitest.Scenario{Name: "nothing of that was kept", As: apitest.SignIn,
			Do: "GET /api/customer", Status: 200,
			Has: map[string]any{"customerUniqueRef": "alice", "email": "",
				"agreeWithTerms": false}},
		apitest.Scenario{Name: "signed up, what the server stamps ignored", As: apitest.SignIn,
			Do: do, Header: key, Status: 200,
			Body: strings.Replace(ann, "{", `{"customerUniqueRef":"bob","plan":"TEAM",`, 1),
			Has: map[string]any{"customerUniqueRef": "alice", "email": "ann@shop.test",
				"firstname": "Ann", "lastname": "Smith", "agreeWithTerms": true, "plan": nil,
				"subscriptionStatus": nil},
			Lacks: []string{"statistic"}},
		apitest.Scenario{Name: "replayed", As: apitest.SignIn, Do: do, Header: key, Status: 200,
			Body:    strings.Replace(ann, "{", `{"customerUniqueRef":"bob","plan":"TEAM",`, 1),
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "twice", As: apitest.SignIn, Do: do, Body: ann, Status: 409,
			Code: "customer_exists"},
		apitest.Scenario{Name: "another's address", As: apitest.Admin, Do: do,
			Body: body("ANN@shop.test", "true"), Status: 409, Code: "email_taken",
			Has: map[string]any{"errors.0.field": "email"}},
		apitest.Scenario{Name: "any key reads it", As: apitest.Reader, Do: "GET /api/customer",
			Status: 200, Has: map[string]any{"email": "ann@shop.test"}},
		apitest.Scenario{Name: "nobody else does", As: apitest.Other, Do: "GET /api/customer",
			Status: 200, Has: map[string]any{"customerUniqueRef": "bob", "email": ""}},
	)
}

// Groups are shared by e-mail address, so nobody may sign up with somebody else's.
func TestSignUpOfAnAccount(t *testing.T) {
	s := apitest.Start(t)
	for n, email := range []string{"alice@shop.test", "Ann@shop.test"} {
		s.Client.Must(t, client.CreateAccount{ID: ids.ID{byte(n + 1)}, Customer: "alice",
			Email: email})
	}
	const do = "POST /api/customer"
	s.Run(t,
		apitest.Scenario{Name: "another's address", As: apitest.SignIn, Do: do, Status: 400,
			Body: strings.Replace(ann, "ann@", "bob@", 1), Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "email"}},
		apitest.Scenario{Name: "its own", As: apitest.SignIn, Do: do, Body: ann, Status: 200,
			Has: map[string]any{"email": "Ann@shop.test"}})
}

func TestPut(t *testing.T) {
	s := apitest.Start(t)
	const do = "PUT /api/customer"
	const named = `{"firstname":"Anna","lastname":"Jones","agreeWithTerms":true}`
	s.Run(t,
		apitest.Scenario{Name: "read keys may not", As: apitest.Reader, Do: do, Body: named,
			Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "terms refused", As: apitest.User, Do: do, Status: 400,
			Body: strings.Replace(named, "true", "false", 1), Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "agreeWithTerms"}},
		apitest.Scenario{Name: "name missing", As: apitest.User, Do: do, Status: 400,
			Body: `{"firstname":"A","agreeWithTerms":true}`, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "lastname"}},
		apitest.Scenario{Name: "before signing up", As: apitest.User, Do: do, Body: named,
			Status: 200, Has: map[string]any{"firstname": "Anna", "email": ""}},
		apitest.Scenario{Name: "signing up afterwards", As: apitest.SignIn,
			Do: "POST /api/customer", Body: ann, Status: 200,
			Has: map[string]any{"firstname": "Ann", "email": "ann@shop.test"}},
		apitest.Scenario{Name: "the address does not change", As: apitest.User, Do: do,
			Body: strings.Replace(named, "{", `{"email":"new@shop.test",`, 1), Status: 200,
			Has: map[string]any{"firstname": "Anna", "lastname": "Jones",
				"email": "ann@shop.test"}},
	)
}

func TestStatistic(t *testing.T) {
	s := apitest.Start(t)
	const do = "GET /api/customer?withStat=true"
	usage := map[string]int{}
	for _, name := range plans.Caps() {
		usage[string(name)] = 0
	}
	s.Run(t,
		apitest.Scenario{Name: "no such parameter", As: apitest.User,
			Do: "GET /api/customer?withStats=true", Status: 400, Code: "unknown_parameter"},
		apitest.Scenario{Name: "not a boolean", As: apitest.User,
			Do: "GET /api/customer?withStat=yes", Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "withStat"}},
		apitest.Scenario{Name: "of a new customer", As: apitest.User, Do: do, Status: 200,
			Has: map[string]any{"statistic.scraperCount": 0, "statistic.runCountLast30d": 0,
				"statistic.quotaUsage": usage}})
	group := s.NewGroup(t, "alice", "g")
	s.NewGroup(t, "alice", "empty")
	for i := range 3 {
		scraper := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: "alice",
			Group: group, Spec: model.Scraper{Name: fmt.Sprint("s", i)}}
		s.Client.Must(t, scraper)
		if i < 2 {
			s.Client.Must(t, client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(),
				Customer: "alice", Scraper: scraper.ID, Links: 1, List: s.IDs.New(),
				Tiers: model.TiersOf(model.Plain)})
		}
	}
	s.Client.Must(t, client.BeginResult{Job: s.IDs.New(), Customer: "alice", Group: group,
		Made: client.Enriched, Kind: work.Merge, NewGroup: s.IDs.New(), NewScraper: s.IDs.New()})
	s.Client.Must(t, client.ShareGroup{Customer: "alice", Group: group,
		Emails: []string{"c@x.test", "d@x.test", "e@x.test", "f@x.test"}})
	s.Client.Must(t, client.PutCategory{ID: s.IDs.New(), Customer: "alice", Group: group,
		Name: "all", Filters: []byte("{}")})
	counts := map[string]any{"statistic.scraperCount": 3, "statistic.runCountLast30d": 3,
		"statistic.quotaUsage": map[plans.Cap]int{plans.MaxScrapers: 3, plans.MaxGroups: 2,
			plans.DataSharingLimits: 4, plans.GroupCustomCategoriesLimit: 1}}
	s.Run(t,
		apitest.Scenario{Name: "counted", As: apitest.User, Do: do, Status: 200, Has: counts},
		apitest.Scenario{Name: "of one's own", As: apitest.Other, Do: do, Status: 200,
			Has: map[string]any{"statistic.scraperCount": 0}})
}

func TestAdditionalInfo(t *testing.T) {
	s := apitest.Start(t)
	const path = "/api/customer/preferences/additional-info"
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	whole := func(members ...string) string { return "{" + strings.Join(members, ",") + "}" }
	s.Run(t,
		apitest.Scenario{Name: "none", As: apitest.Reader, Do: "GET " + path, Status: 200,
			Has: map[string]any{"": map[string]any{}}},
		apitest.Scenario{Name: "removing from none", As: apitest.User,
			Do: "DELETE " + path + "/k", Status: 200, Has: map[string]any{"": map[string]any{}}},
		apitest.Scenario{Name: "read keys may not", As: apitest.Reader, Do: "PUT " + path,
			Body: `{"k":"v"}`, Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "no map", As: apitest.User, Do: "PUT " + path, Body: `["k"]`,
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "no text", As: apitest.User, Do: "PUT " + path, Body: `{"k":1}`,
			Status: 400, Code: "invalid_request", Has: map[string]any{"errors.0.field": "k"}},
		apitest.Scenario{Name: "null", As: apitest.User, Do: "PUT " + path, Body: `{"k":null}`,
			Status: 400, Code: "invalid_request", Has: map[string]any{"errors.0.field": "k"}},
		apitest.Scenario{Name: "long key", As: apitest.User, Do: "PUT " + path, Status: 400,
			Body: whole(`"` + strings.Repeat("é", 65) + `":"v"`), Code: "invalid_request"},
		apitest.Scenario{Name: "blank key", As: apitest.User, Do: "PUT " + path, Status: 400,
			Body: `{" ":"v"}`, Code: "invalid_request"},
		apitest.Scenario{Name: "long value", As: apitest.User, Do: "PUT " + path, Status: 400,
			Body: whole(`"k":"` + strings.Repeat("é", 4_097) + `"`), Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "k"}},
		apitest.Scenario{Name: "many keys", As: apitest.User, Do: "PUT " + path, Status: 402,
			Body: whole(many...), Code: "limit_reached"},
		apitest.Scenario{Name: "nothing of that was kept", As: apitest.User, Do: "GET " + path,
			Status: 200, Has: map[string]any{"": map[string]any{}}},
		apitest.Scenario{Name: "at the edge", As: apitest.User, Do: "PUT " + path, Status: 200,
			Body: whole(fmt.Sprintf("%q:%q", strings.Repeat("é", 64),
				strings.Repeat("é", 4_096)), `"a/b c":"1"`)},
		apitest.Scenario{Name: "another's is apart", As: apitest.Other, Do: "GET " + path,
			Status: 200, Has: map[string]any{"": map[string]any{}}},
		apitest.Scenario{Name: "removed", As: apitest.User, Status: 200,
			Do:  "DELETE " + path + "/" + strings.Repeat("%C3%A9", 64),
			Has: map[string]any{"": map[string]any{"a/b c": "1"}}},
		apitest.Scenario{Name: "the rest stays", As: apitest.User, Do: "PUT " + path,
			Body: `{"d":"2"}`, Status: 200,
			Has: map[string]any{"": map[string]any{"a/b c": "1", "d": "2"}}},
		apitest.Scenario{Name: "a key with a slash", As: apitest.User,
			Do: "DELETE " + path + "/a%2Fb%20c", Status: 200,
			Has: map[string]any{"": map[string]any{"d": "2"}}},
		apitest.Scenario{Name: "again", As: apitest.User, Do: "DELETE " + path + "/a%2Fb%20c",
			Status: 200, Has: map[string]any{"": map[string]any{"d": "2"}}},
	)
}

func TestPages(t *testing.T) {
	own := []byte("<!doctype html><title>Terms</title>")
	s := apitest.Start(t, func(c *apiserver.Config) { c.UserAgreement = own })
	for route, text := range map[string]string{
		"/api/customer/user-agreement":       string(own),
		"/api/customer/subscription/success": "Thank you",
		"/api/customer/payment/canceled":     "Nothing was charged",
	} {
		s.Run(t, apitest.Scenario{Name: route, Do: "GET " + route, Status: http.StatusOK,
			Headers: map[string]string{"Content-Type": "text/html; charset=utf-8",
				"Content-Security-Policy": "*", "X-Content-Type-Options": "nosniff"},
			Check: func(t *testing.T, a apitest.Answer) {
				if !strings.Contains(string(a.Body), text) {
					t.Errorf("%s", a.Body)
				}
			}})
	}
	s = apitest.Start(t)
	s.Run(t, apitest.Scenario{Name: "no agreement", Do: "GET /api/customer/user-agreement",
		Status: http.StatusOK,
		Check: func(t *testing.T, a apitest.Answer) {
			if !strings.Contains(string(a.Body), "has published no user agreement") {
				t.Errorf("%s", a.Body)
			}
		}})
}
