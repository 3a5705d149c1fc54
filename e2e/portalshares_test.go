package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
)

// TestPortalOfAReader: an account makes a profile with its own address, and with no other. What is
// shared with that address can be found and read. What only the owner may do is not offered.
func TestPortalOfAReader(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps of others"))(t)
	scraper := v.lamps(group)
	run := suite.Must(v.RunScraper(ctx, scraper))(t)
	if _, _, err := v.Finished(ctx, run); err != nil {
		t.Fatal(err)
	}
	const email, password = "friend@example.com", "seventeen lamps in a row"
	if err := v.Admin().Call(ctx, "POST", "/api/admin/accounts", nil, map[string]any{
		"email": email, "password": password, "customerRef": ""}, nil); err != nil {
		t.Fatal(err)
	}
	if err := v.Call(ctx, "PUT", "/api/scraper/shared/group/"+group, nil,
		[]map[string]string{{"email": email}}, nil); err != nil {
		t.Fatal(err)
	}

	friend := &visit{person: newPerson(t, browser.Path(t), v.Server), Service: v.Service,
		product: v.product}
	friend.opens("/sign-in", "Sign in")
	friend.types([2]string{"email", email}, [2]string{"password", password})
	friend.sees(`location.pathname === "/portal" && document.querySelector(".balance strong")`)
	friend.goes("/groups", `document.querySelector("#group-name")`)
	friend.says("Nobody shares a group with you. Others share by the e-mail address of your profile")
	friend.goes("/preferences", `document.querySelector("#firstname")`)
	friend.enters("email", "other@example.com")
	friend.enters("firstname", "Fran")
	friend.enters("lastname", "Friend")
	friend.clicks("main form .check input")
	friend.presses("Create the profile")
	friend.says("E-mail address must be the address that somebody of this customer signs in with.")
	friend.enters("email", email)
	friend.do(chromedp.KeyEvent("\r"))
	friend.says("Saved.")
	friend.sees(`!document.querySelector("#email") &&
		document.querySelector("main .facts").innerText.includes("friend@example.com")`)

	friend.goes("/rows", `document.querySelector("main td a")`)
	friend.clicks("main td a")
	friend.sees(`document.querySelector("h1").innerText === "Rows of Lamps of others"`)
	friend.clicks(".rows tr[aria-rowindex='3'] button")
	friend.presses("Where it comes from")
	friend.sees(`document.querySelector("dialog ol li")`)
	if said := asks[string](friend.person, `document.querySelector("dialog").innerText`); said == "" ||
		asks[bool](friend.person, `document.querySelector("dialog").innerText.includes("€")`) {
		t.Errorf("a reader sees what the owner paid: %s", said)
	}
	friend.goes("/groups", `document.querySelector("main td a")`)
	if to := asks[[]string](friend.person, `[...document.querySelectorAll("main td a")].map(a =>
		a.pathname)`); len(to) != 1 || to[0] != "/portal/rows/"+group {
		t.Errorf("a reader is led to %v", to)
	}
	shared := suite.Must(v.PutGroup(ctx, "Chairs of others"))(t) // the profile is notified
	if err := v.Call(ctx, "PUT", "/api/scraper/shared/group/"+shared, nil,
		[]map[string]string{{"email": email}}, nil); err != nil {
		t.Fatal(err)
	}
	friend.goes("/notices", `document.querySelector(".notices")`)
	friend.clicks(".notices a")
	friend.sees(`document.querySelector("h1").innerText === "Rows of Chairs of others"`)
	v.ends()
}
