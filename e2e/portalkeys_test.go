package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// focused is the text or id of the focused element.
const focused = `(a => a.id || a.innerText || a.tagName)(document.activeElement)`

// TestPortalByKeys: if a pressed element disappears, the focus goes beside it, and never to a
// destructive one. The rows are a single stop of the Tab key.
func TestPortalByKeys(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	scraper := v.lamps(group)
	run := suite.Must(v.RunScraper(ctx, scraper))(t)
	if _, _, err := v.Finished(ctx, run); err != nil {
		t.Fatal(err)
	}
	if err := v.Call(ctx, "PUT", "/api/key/generate?name=Mine&scope=USER", nil, nil,
		nil); err != nil {
		t.Fatal(err)
	}

	v.goes("/keys", `document.querySelector("main td button")`)
	v.pressesKey("Revoke", "\r", "Cancel")
	v.pressesKey("Cancel", "\r", "Revoke")
	v.goes("/groups/"+group, `document.querySelector("#share")`)
	v.pressesKey("What would it cost?", "\r", "cap")
	v.pressesKey("Cancel", "\r", "What would it cost?")
	v.pressesKey("Delete the group", "\r", "Keep it")
	v.pressesKey("Keep it", "\r", "Delete the group")

	v.goes("/rows/"+group, `document.querySelector(".rows tr[aria-rowindex='20'] td bdi")`)
	if n := asks[int](v.person, `document.querySelectorAll(".rows [tabindex='0']").length`); n != 1 {
		t.Errorf("%d rows are stops of the Tab key", n)
	}
	v.pressesKey("1", "\t", "row")
	v.pressesKey("1", "ArrowDown", "2")
	v.pressesKey("2", "ArrowUp", "1")
	v.pressesKey("1", "\r", "The whole row")
	v.pressesKey("Close", "\r", "1")
	v.ends()
}

// pressesKey presses a key on the element with a text, and checks where the focus is then.
func (v *visit) pressesKey(on, key, want string) {
	v.person.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("main button")].find(b =>
		b.innerText === %q && b.checkVisibility())`, on)
	v.sees(find)
	asks[bool](v.person, "("+find+".focus(), true)")
	if len(key) > 1 {
		asks[bool](v.person, fmt.Sprintf(`document.activeElement.dispatchEvent(
			new KeyboardEvent("keydown", {key: %q, bubbles: true})) || true`, key))
	} else {
		v.do(chromedp.KeyEvent(key))
	}
	v.sees(fmt.Sprintf("%s === %q", focused, want))
}

// pastes pastes a list of 100,000 addresses.
const pastes = `(() => { const pasted = new DataTransfer();
	pasted.setData("text/plain", Array.from({length: 100000}, (_, i) =>
		"http://shop.example/list/1?n=" + i).join("\n"));
	document.querySelector("#addresses").dispatchEvent(new ClipboardEvent("paste",
		{clipboardData: pasted, bubbles: true, cancelable: true}));
	return true; })()`

// TestPortalTakesLongLists: a pasted list of 100,000 lines avoids the browser's work per line. It
// is restored after a reload, and a list that is too long for that says so.
func TestPortalTakesLongLists(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	const lines = `document.querySelector("#addresses")?.value.split("\n").length === 100000`
	v.goes("/", `document.querySelector("#addresses")`)
	asks[bool](v.person, pastes)
	v.sees(lines)
	v.do(chromedp.Reload())
	v.sees(lines)
	for range 2 { // more than browsers store
		asks[bool](v.person, pastes)
	}
	v.says("The list is too long to be kept if you reload this page.")
	v.ends()
}
