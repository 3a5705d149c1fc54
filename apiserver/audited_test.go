package apiserver_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// writesOfNothing are the calls that name nothing of the customer's, in order.
var writesOfNothing = []string{
	"PUT /api/key/generate?name=k&scope=USER",
	`POST /api/webhooks {"url":"https://three.test/","events":["API_KEY_CREATED"]}`,
	`POST /api/customer {"email":"a@x.test","firstname":"A","lastname":"L","agreeWithTerms":true}`,
	`PUT /api/customer {"firstname":"B","lastname":"L","agreeWithTerms":true}`,
	`PUT /api/customer/preferences/additional-info {"shoeSize":"42"}`,
	"DELETE /api/customer/preferences/additional-info/{shoeSize}",
	`PUT /api/customer/preferences/notifications {"SCRAPER_RUN_FAILED":"BOTH"}`,
	`PUT /api/customer/preferences/wallet {"lowBalanceThresholdMicros":7}`,
	`POST /api/feedback {"text":"Please read PDF files, too."}`,
	"POST /api/notifications/read",
	`PUT /api/schema/customer {"type":"PRODUCT","version":7,"content":` + aSchema + "}",
}

// writesOfAdmins are the operators' calls, in order.
var writesOfAdmins = []string{
	`PUT /api/schema {"type":"PRODUCT","version":7,"content":` + aSchema + "}",
	`PUT /api/admin/settings {"walletBillingEnabled":false}`,
	`PUT /api/admin/settings {"uploads":{"holdMinutes":7}}`,
	"PUT /api/admin/prices {prices}",
	`PUT /api/admin/catalogue {"format":"csv","content":"id,title\na,one\n"}`,
	`PUT /api/admin/customers/{ref}/upload-limits {"maxBytes":1000}`,
	`POST /api/admin/customers/{ref}/wallet/adjustments {"amountMicros":5,"note":"a gift"}`,
	"PUT /api/admin/customers/{ref}/block",
	"DELETE /api/admin/customers/{ref}/block",
	"POST /api/admin/customers/{ref}/block",
	"PUT /api/admin/nodes/{name}/drain",
	"DELETE /api/admin/nodes/{name}/drain",
	"POST /api/admin/nodes/{name}/drain",
	`POST /api/admin/accounts {"email":"n@x.test","password":"correct horse battery"}`,
	`PUT /api/admin/accounts/{account}/password {"password":"battery horse correct"}`,
	"POST /api/admin/accounts/{account}/password-link",
	"PUT /api/admin/accounts/{account}/disable",
	"DELETE /api/admin/accounts/{account}/disable",
	"DELETE /api/admin/accounts/{account}",
	"DELETE /api/admin/customers/{ref}",
}

const aSchema = `{"type":"object","properties":{"name":{"type":"string"}}}`

var (
	// noWrites are calls that read, or only prepare a read or a deletion.
	noWrites = regexp.MustCompile("^GET|/preview-delete|/estimate|/scraper-simple/|" +
		"/preview-rule|/billing/|/api/events/ticket")
	// idle are calls that find nothing to do here.
	idle = regexp.MustCompile("/release$|/group/{group}/run$")
	// writesElsewhere are calls with tests of their own: sign-ins, agents, the payment provider and
	// parts of files. Others need a cluster, or a run with failed links.
	writesElsewhere = regexp.MustCompile(" /(mcp|oauth/.*|sign-.*)$| /api/(auth|subscription|" +
		"uploads|wallet/topup)|/restore$| /api/admin/nodes/{}$|/requeue$")
)

// An admin calls every route that writes: for alice those that name something of hers and those
// that name nothing, then the operators' own. Each call that succeeds is in the audit trail. The
// table names those that do not succeed.
func TestWritesByAdminsAreTold(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store), apitest.WithBlobs(t),
		func(config *apiserver.Config) {
			config.Payments = struct{ payment.Provider }{} // no call asks it for anything
		})
	th, names := share(t, s, store), owned(t, s)
	account := s.IDs.New()
	s.Client.Must(t, client.CreateAccount{ID: account, Email: "b@x.test", Customer: "bob",
		Password: "p"})
	s.Client.Must(t, client.RegisterNode{Name: "f1", Boot: ids.ID{1}, Roles: []string{"fetcher"},
		Capacity: 1})
	prices := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: "GET /api/admin/prices"}).Body
	names["{account}"], names["{ref}"], names["{name}"] = account.String(), "bob", "f1"
	names["{shoeSize}"], names["{prices}"] = "shoeSize", strings.Replace(string(prices),
		`"sellingPriceMicros":150`, `"sellingPriceMicros":151`, 1)
	calls := append(named(t), ofNoGroup(t)...)
	turns := strings.NewReplacer(reExtract, "X", "DELETE /api/scraper/group", "Z", "DELETE", "Y",
		"POST /api/scraper/{scraper}/stop", "X~") // it stops what X began, and deletions come last
	slices.SortFunc(calls, func(a, b string) int {
		return strings.Compare(turns.Replace(a), turns.Replace(b))
	})
	var table bytes.Buffer
	table.WriteString("\tanswer\ttold\n")
	routes, tried, n := writingRoutes(t), map[string]bool{}, 0
	do := func(call string) apitest.Answer {
		filled := th.fill(call)
		for name, id := range names {
			filled = strings.ReplaceAll(filled, name, id)
		}
		method, rest, _ := strings.Cut(filled, " ")
		path, body, _ := strings.Cut(rest, " ")
		n++
		header := map[string]string{"Idempotency-Key": fmt.Sprint(n)}
		if !strings.HasPrefix(path, "/api/admin/") && path != "/api/schema" {
			header["X-Customer-Ref"] = "alice"
		}
		s.Clock.Advance(time.Second)
		return s.Call(t, apitest.Scenario{As: apitest.Admin, Do: method + " " + path, Body: body,
			Header: header})
	}
	for _, call := range slices.Concat(slices.Compact(calls), writesOfNothing, writesOfAdmins) {
		if noWrites.MatchString(call) {
			continue
		}
		if path, deletes := strings.CutPrefix(call, "DELETE "); deletes {
			path, query, _ := strings.Cut(path, "?")
			if preview := "POST " + path + "/preview-delete"; slices.Contains(routes,
				routeOf(preview)) {
				if a := do(preview + "?" + query); a.Status != 200 {
					t.Errorf("%s: %d %s", preview, a.Status, a.Body)
				}
			}
		}
		before := s.Client.View().AuditHead().Number
		a := do(call)
		told := s.Client.View().AuditHead().Number > before
		tried[routeOf(call)] = true
		fmt.Fprintf(&table, "%s\t%s\t%t\n", call, verdict(a), told)
		if !told && a.Status < 300 && !idle.MatchString(call) {
			t.Errorf("%s: %d, and the audit trail has nothing of it", call, a.Status)
		}
	}
	for _, route := range routes {
		if !tried[route] && !noWrites.MatchString(route) && !writesElsewhere.MatchString(route) {
			t.Errorf("%s is not called", route)
		}
	}
	holdTable(t, "audited.txt", table.Bytes())
}

// anyName matches a name in a route.
var anyName = regexp.MustCompile("{[^/]*}")

// routeOf returns a call's route without the names in it.
func routeOf(call string) string {
	method, rest, _ := strings.Cut(call, " ")
	path, _, _ := strings.Cut(rest, " ")
	path, _, _ = strings.Cut(path, "?")
	return method + " " + anyName.ReplaceAllString(path, "{}")
}

// writingRoutes lists the description's routes but those that read.
func writingRoutes(t *testing.T) (routes []string) {
	t.Helper()
	for path, methods := range describedPaths(t) {
		for method := range methods {
			if method != "get" && method != "head" {
				routes = append(routes, routeOf(strings.ToUpper(method)+" "+path))
			}
		}
	}
	return routes
}
