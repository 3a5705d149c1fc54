package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// TestPortalOperates is what an administrator sees and does: the cluster, a drain by a click,
// customers, settings, work, backups and the audit trail. Who is none sees nothing of it.
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
	v.sees(`document.querySelector("main tbody button").innerText === "Take the drain back"`)
	v.says("hands over its shards.")
	nodes := suite.Must(v.Admin().Nodes(t.Context()))(t)
	if len(nodes) != 1 || nodes[0].State == "ALIVE" {
		t.Errorf("after a drain by a click: %+v", nodes)
	}
	v.do(chromedp.Reload())
	v.presses("Take the drain back")
	v.sees(`document.querySelector("main tbody button").innerText === "Drain"`)
	v.shows("nodes")
	v.goes("/operators/work", `document.querySelector("main table, main p + p, main .filter + p")`)
	v.goes("/operators/backups", `document.querySelector("main .button")`)
	v.shows("backups")

	v.goes("/operators/customers", `document.querySelectorAll("main tbody tr").length > 1`)
	v.shows("customers")
	v.goes("/operators/customer?ref=alice", `document.querySelector("#adjust")`)
	v.enters("adjust", "12.345.6")
	v.presses("Book it")
	v.says("Enter an amount in euro and cents")
	v.enters("adjust", "-1.50")
	v.enters("note", hostileName)
	v.presses("Book it")
	v.says("It is booked.")
	v.sees(`document.querySelector("main .facts").innerText.includes("-€1.50")`)
	v.presses("Block the customer")
	v.says("The customer is blocked.")
	v.shows("customer")
	v.presses("Take the block back")
	v.says("The customer is let in again.")
	v.presses("Remove the customer")
	v.presses("Keep it")
	v.do(chromedp.Navigate(v.Server + "/portal/operators/customer?ref=nobody"))
	v.sees(`document.querySelector("h1")?.innerText === "Customer" &&
		document.querySelector("main .trouble")`)
	v.judge("a customer that is not there")

	v.goes("/operators/settings", `document.querySelector("#low")`)
	v.enters("rates", "run often")
	v.presses("Save")
	v.sees(`document.querySelector("main .trouble")?.innerText.length > 10`)
	v.enters("rates", "run 30/1m")
	v.presses("Save")
	v.sees(`document.querySelector("main .facts").innerText.includes("1")`)
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#rates")?.value === "run 30/1m"`)
	v.shows("settings")
	v.goes("/operators/audit", `document.querySelectorAll("main tbody tr").length > 3`)
	asks[bool](v.person, `(document.querySelector("main tbody summary").click(), true)`)
	v.says("After")
	v.shows("audit")
	v.ends()
}

// Who is no administrator has no link to the pages of operators. Who enters their address all the
// same is refused by the API, and stays signed in.
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
