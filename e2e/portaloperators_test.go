package e2e

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// TestPortalOperates follows an administrator: the cluster, a drain by a click, customers,
// settings, work, backups and the audit trail. Others see none of it.
func TestPortalOperates(t *testing.T) {
	t.Parallel()
	v := newVisit(t, true)
	other := suite.Must(v.Customer("alice").PutGroup(t.Context(), "Alice's"))(t)
	if other == "" {
		t.Fatal("the other customer has no group")
	}

	v.clicks(`header a[href="/portal/operators"]`)
	v.sees(`document.querySelectorAll("main .fact").length === 9`)
	v.shows("operators")
	v.goes("/operators/nodes", `document.querySelector("main tbody button")`)
	v.presses("Drain")
	v.sees(`document.querySelector("main tbody button").innerText === "End the drain"`)
	v.says("is handing over its shards.")
	nodes := suite.Must(v.Admin().Nodes(t.Context()))(t)
	if len(nodes) != 1 || nodes[0].State == "ALIVE" {
		t.Errorf("after a drain by a click: %+v", nodes)
	}
	v.do(chromedp.Reload())
	v.presses("End the drain")
	v.sees(`document.querySelector("main tbody button").innerText === "Drain"`)
	v.shows("nodes")
	v.goes("/operators/work", `document.querySelector("main table, main p + p, main .filter + p")`)
	v.shows("work")
	v.goes("/operators/backups", `document.querySelector("main .button")`)
	v.shows("backups")

	v.goes("/operators/customers", `document.querySelectorAll("main tbody tr").length > 1`)
	v.shows("customers")
	v.goes("/operators/customer?ref=alice", `document.querySelector("#adjust")`)
	v.enters("adjust", "12.345.6")
	v.presses("Book the amount")
	v.says("Enter an amount in euros and cents")
	v.enters("adjust", "-1.50")
	v.enters("note", hostileName)
	v.presses("Book the amount")
	v.says("The amount is booked.")
	v.sees(`document.querySelector("main .facts").innerText.includes("-€1.50")`)
	v.presses("Block the customer")
	v.says("The customer is blocked.")
	v.shows("customer")
	v.presses("Unblock the customer")
	v.says("The customer is no longer blocked.")
	v.presses("Remove the customer")
	v.presses("Keep it")
	v.do(chromedp.Navigate(v.Server + "/portal/operators/customer?ref=nobody"))
	v.sees(`document.querySelector("h1")?.innerText === "Customer" &&
		document.querySelector("main .trouble")`)
	v.judge("a customer that is not there")

	v.setsPrices()
	v.goes("/operators/settings", `document.querySelector("#low")`)
	v.enters("rates", "run often")
	v.presses("Save")
	v.sees(`document.querySelector("main .trouble")?.innerText.length > 10`)
	v.enters("rates", "run 30/1m")
	v.enters("history", "a year")
	v.presses("Save")
	v.says("Enter a whole number of days.")
	v.enters("history", "89")
	v.presses("Save")
	v.sees(`document.querySelector("#history[aria-invalid]") &&
		/^Days of history .*90/.test(document.querySelector("#history-problem").innerText)`)
	v.enters("history", "400")
	v.presses("Save")
	v.sees(`document.querySelector("main .facts").innerText.includes("1")`)
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#rates")?.value === "run 30/1m" &&
		document.querySelector("#history").value === "400"`)
	v.shows("settings")
	v.setsPlans()
	v.goes("/operators/audit", `document.querySelectorAll("main tbody tr").length > 3`)
	asks[bool](v.person, `(document.querySelector("main tbody summary").click(), true)`)
	v.says("After")
	if asks[bool](v.person, `[...document.querySelectorAll("main td.wide, main td.wide p")].some(
		(cell) => cell.scrollWidth > cell.clientWidth)`) {
		t.Error("a change is wider than its cell")
	}
	asks[bool](v.person, `(() => { // ids are wide or narrow, by chance, and times by the day
		const texts = document.createTreeWalker(document.querySelector("main table"), 4);
		while (texts.nextNode()) {
			texts.currentNode.data = texts.currentNode.data.replace(/[0-9a-f]{24,}/g, (id) =>
				"0".repeat(id.length)).replace(
				/^[A-Z][a-z]+ \d+, \d{4}, \d+:\d\d\s[AP]M$/, "Nov 30, 2026, 12:33 PM");
		}
		return true; })()`)
	v.shows("audit")
	v.ends()
}

const pricesPath = "/api/admin/prices"

type priceTable struct {
	Version int              `json:"version"`
	Rows    []map[string]any `json:"rows"`
}

// prices returns the current prices.
func (v *visit) prices() (now priceTable) {
	t := v.person.t
	t.Helper()
	if err := v.Admin().Call(t.Context(), "GET", pricesPath, nil, nil, &now); err != nil {
		t.Fatal(err)
	}
	return now
}

// setsPrices changes prices after a preview of the effect. If somebody else has changed some in the
// meantime, nothing is set, and the entries stay.
func (v *visit) setsPrices() {
	t := v.person.t
	t.Helper()
	first := v.prices()
	v.goes("/operators/prices", `document.querySelector("#price-1")`)
	if rows := asks[int](v.person, `document.querySelectorAll("main tbody tr").length`); rows !=
		len(first.Rows) {
		t.Errorf("%d of %d prices are shown", rows, len(first.Rows))
	}
	v.presses("See what changes")
	v.says("Nothing is changed yet.")
	v.enters("price-1", "cheap")
	v.presses("See what changes")
	v.says("Enter an amount in euros")
	v.sees(`document.activeElement.matches("#price-1[aria-invalid]")`)
	v.enters("price-1", "0.00085")
	asks[bool](v.person, `(document.querySelectorAll("main tbody [type=checkbox]")[2].click(), true)`)
	v.presses("See what changes")
	v.says("A page costs €0.00085 instead of €0.00075.")
	v.says("It is disabled: customers do not see it")
	v.shows("prices-set")
	if now := v.prices(); now.Version != first.Version {
		t.Errorf("a look at the changes has made version %d", now.Version)
	}

	other := v.prices()
	other.Rows[0]["sellingPriceMicros"] = 160
	if err := v.Admin().Call(t.Context(), "PUT", pricesPath, nil, other, nil); err != nil {
		t.Fatal(err)
	}
	v.presses("Set these prices")
	v.says("The prices are of version 2 now.")
	v.says("keeps your entries")
	v.sees(`document.querySelector("main tbody tr").innerText.includes("€0.00016") &&
		document.querySelector("#price-1").value === "0.00085"`)
	v.judge("prices that were changed meanwhile")
	v.presses("See what changes")
	v.presses("Continue editing")
	v.presses("See what changes")
	v.presses("Set these prices")
	v.says("The prices are set.")
	now := v.prices()
	if now.Version != 3 || now.Rows[0]["sellingPriceMicros"] != 160.0 ||
		now.Rows[1]["sellingPriceMicros"] != 850.0 || now.Rows[2]["enabled"] != false {
		t.Errorf("set are version %d, %v", now.Version, now.Rows[:3])
	}
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#price-1")?.value === "0.00085" &&
		!document.querySelectorAll("main tbody [type=checkbox]")[2].checked`)
	asks[bool](v.person, `(document.querySelector("main tbody [type=checkbox]").click(), true)`)
	v.presses("See what changes")
	v.presses("Set these prices") // the plain tier stays enabled
	v.sees(`document.querySelector("main .trouble")?.innerText.includes("Enabled (Plain)")`)
	asks[bool](v.person, `(document.querySelector("main tbody [type=checkbox]").click(), true)`)
	v.pricesADomain()
}

// pricesADomain gives a domain a price, changes it, disables it and removes it.
func (v *visit) pricesADomain() {
	t := v.person.t
	t.Helper()
	row := func(version int, want map[string]any) {
		t.Helper()
		v.sees(fmt.Sprintf(`document.querySelector("main .facts dd").innerText === "%d"`, version))
		now := v.prices()
		if last := now.Rows[len(now.Rows)-1]; now.Version != version || !maps.Equal(last, want) {
			t.Errorf("version %d ends with %v, want %d and %v", now.Version, last, version, want)
		}
	}
	adds := func(domain, price string) {
		v.enters("domain-name", domain)
		v.enters("domain-price", price)
		v.presses("Add it to the table")
	}
	sets := func() {
		v.presses("See what changes")
		v.presses("Set these prices")
	}
	v.goes("/operators/prices", `document.querySelector("#price-1")`)
	adds("https://shop.example/", "0.002")
	v.says("Enter a domain")
	adds("Shop.example", "dear")
	v.says("Enter an amount in euros")
	adds("Shop.example", "0.002")
	adds("shop.example", "0.003")
	v.says("The domain is already in the table.")
	v.presses("See what changes")
	v.says("It is new. A page costs €0.002.")
	v.presses("Set these prices")
	shop := map[string]any{"rowKey": "domain:shop.example", "kind": "DOMAIN",
		"label": "shop.example", "sellingPriceMicros": 2000.0, "enabled": true}
	row(4, shop)
	last := len(v.prices().Rows) - 1
	v.enters(fmt.Sprintf("price-%d", last), "0.001")
	sets()
	shop["sellingPriceMicros"] = 1000.0
	row(5, shop)
	asks[bool](v.person, fmt.Sprintf(
		`(document.querySelectorAll("main tbody [type=checkbox]")[%d].click(), true)`, last))
	sets()
	shop["enabled"] = false
	row(6, shop)
	v.judge("a domain with a price")
	drops := func(button string) {
		t.Helper()
		asks[bool](v.person, fmt.Sprintf(`([...document.querySelectorAll("main tbody button")].
			findLast((b) => b.innerText === %q).click(), true)`, button))
	}
	adds("fresh.example", "0.003")
	drops("Remove") // before it is set
	v.presses("See what changes")
	v.says("Nothing is changed yet.")
	drops("Remove")
	drops("Keep")
	drops("Remove")
	v.presses("See what changes")
	v.says("Its price is removed")
	v.judge("a domain whose price goes")
	v.presses("Set these prices")
	v.sees(`document.querySelector("main .facts dd").innerText === "7"`)
	if now := v.prices(); len(now.Rows) != last || now.Rows[last-1]["kind"] == "DOMAIN" {
		t.Errorf("the domain is still there: %v", now.Rows)
	}
}

type planList struct {
	Plans []map[string]any `json:"plans"`
}

// plans returns the catalogue's plans.
func (v *visit) plans() (now planList) {
	t := v.person.t
	t.Helper()
	if err := v.Admin().Call(t.Context(), "GET", "/api/admin/settings", nil, nil,
		&now); err != nil {
		t.Fatal(err)
	}
	return now
}

// setsPlans changes the catalogue after a preview of the effect: it changes one plan, removes one
// and adds one. If somebody else has set plans in the meantime, nothing is set.
func (v *visit) setsPlans() {
	t := v.person.t
	t.Helper()
	v.goes("/operators/plans", `document.querySelectorAll("main section.card").length === 5`)
	v.presses("See what changes")
	v.says("Nothing is changed yet.")
	v.enters("plan-PRO-MAX_GROUPS", "many")
	v.presses("See what changes")
	v.says("Enter a whole number.")
	v.sees(`document.activeElement.matches("#plan-PRO-MAX_GROUPS[aria-invalid]")`)
	v.enters("plan-PRO-MAX_GROUPS", "30")
	v.enters("plan-PRO-monthlyPrice", "89,505")
	v.presses("See what changes")
	v.sees(`document.activeElement.matches("#plan-PRO-monthlyPrice[aria-invalid]")`)
	v.enters("plan-PRO-monthlyPrice", "89,50")
	v.clicks("#plan-PRO-API")
	v.clicks(`[aria-label="Remove it: Team"]`)
	v.presses("See what changes")
	v.says("A month costs €89.50 instead of €79.00. It loses: Requests as curl. " +
		"Groups: 30 instead of 20.")
	v.says("Team: It is removed")
	v.shows("plans-set")

	other := v.plans()
	other.Plans[1]["monthlyPrice"] = 31
	if err := v.Admin().Call(t.Context(), "PUT", "/api/admin/settings", nil, other,
		nil); err != nil {
		t.Fatal(err)
	}
	v.presses("Set these plans")
	v.says("Somebody else has changed the plans in the meantime.")
	v.sees(`document.querySelector("#plan-BASIC-monthlyPrice").value === "31" &&
		document.querySelector("#plan-PRO-monthlyPrice").value === "89,50"`)
	if now := v.plans(); len(now.Plans) != 5 {
		t.Errorf("plans are set over those of somebody else: %v", now)
	}
	v.presses("See what changes")
	v.presses("Continue editing")
	v.presses("See what changes")
	v.presses("Set these plans")
	v.says("The plans are set.")
	now := v.plans().Plans
	if len(now) != 4 || now[1]["monthlyPrice"] != 31.0 || now[2]["monthlyPrice"] != 89.5 ||
		now[2]["limits"].(map[string]any)["MAX_GROUPS"] != 30.0 ||
		slices.Contains(now[2]["features"].([]any), any("API")) {
		t.Errorf("set are %v", now)
	}
	v.addsAPlan()
}

// addsAPlan adds a plan without a price, which cannot be on offer, and then gives it one.
func (v *visit) addsAPlan() {
	t := v.person.t
	t.Helper()
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#plan-PRO-monthlyPrice")?.value === "89.5"`)
	v.presses("Add it to the catalogue") // only a price is missing
	v.sees(`document.querySelector("#plan-TEAM-level")?.value === "4" &&
		!document.querySelector("#plan-name")`)
	v.clicks("#plan-TEAM-offered")
	v.clicks("#plan-TEAM-DATA_EXPORT")
	v.enters("plan-TEAM-MAX_SCRAPERS", "7")
	v.presses("See what changes")
	v.presses("Set these plans")
	v.sees(`document.querySelector("#plan-TEAM-offered[aria-invalid]") && document.querySelector(
		"main .trouble").innerText.includes("Customers may choose it (Team)")`)
	v.judge("plans that were refused")
	v.enters("plan-TEAM-monthlyPrice", "499")
	v.presses("See what changes")
	v.says("Team: It is new. A month costs €499.00.")
	v.presses("Set these plans")
	v.says("The plans are set.")
	want := map[string]any{"plan": "TEAM", "level": 4.0, "monthlyPrice": 499.0, "offered": true,
		"features": []any{"DATA_EXPORT"}, "limits": map[string]any{"MAX_SCRAPERS": 7.0}}
	if now := v.plans().Plans; len(now) != 5 || !reflect.DeepEqual(now[4], want) {
		t.Errorf("set are %v, want %v at the end", now, want)
	}
}

// Without administrator's rights there is no link to the operators' pages. If their address is
// entered anyway, the API refuses, and the person stays signed in.
func TestPortalOperatesForAdminsAlone(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	v.sees(`document.querySelector("header nav").innerText.includes("Wallet")`)
	if asks[bool](v.person, `document.querySelector("header nav").innerText.includes("Operators")`) {
		t.Error("who is no administrator is led to the pages of operators")
	}
	v.do(chromedp.Navigate(v.Server + "/portal/operators"))
	v.says("Only administrators see this page.")
}
