package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPortalForgets: signing out on the account page leaves nothing in the browser. What another
// customer left in a tab is gone before it can be used.
func TestPortalForgets(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	const entered = `document.querySelector("#addresses")?.value`
	v.goes("/", `document.querySelector("#addresses")`)
	v.enters("addresses", "http://shop.example/secret")
	v.do(chromedp.Reload())
	v.sees(entered + ` === "http://shop.example/secret" && sessionStorage.getItem("shoal-owner")`)
	asks[bool](v.person, `(sessionStorage.setItem("shoal-owner", "another"), true)`)
	v.do(chromedp.Reload())
	v.sees(entered + ` === "" && sessionStorage.getItem("shoal-owner") !== "another"`)

	v.enters("addresses", "http://shop.example/secret")
	v.clicks(`.who a`)
	v.sees(`location.pathname === "/sign-in" && document.querySelector("form button")`)
	if !asks[bool](v.person, `!!sessionStorage.getItem("shoal-entries")`) {
		t.Error("what was entered is gone before the sign-out")
	}
	v.clicks("form button")
	v.sees(`document.querySelector("#password")`)
	if n := asks[int](v.person, `sessionStorage.length`); n > 0 {
		t.Errorf("the sign-out leaves %d entries in the browser", n)
	}
	v.ends()
}
