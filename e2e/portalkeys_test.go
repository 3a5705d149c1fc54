package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// focused is the text or the id of what has the focus.
const focused = `(a => a.id || a.innerText || a.tagName)(document.activeElement)`

// TestPortalByKeys: what is pressed by a key and goes away leaves the focus beside it, and never on
// what destroys. One row of many is a stop of the Tab key.
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
	v.pressesKey("1", "\r", "All of this row")
	v.pressesKey("Close", "\r", "1")
	v.ends()
}

// pressesKey presses a key on what has a text, and sees where the focus is then.
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

// pastes is a list of 100,000 addresses that is pasted.
const pastes = `(() => { const pasted = new DataTransfer();
	pasted.setData("text/plain", Array.from({length: 100000}, (_, i) =>
		"http://shop.example/list/1?n=" + i).join("\n"));
	document.querySelector("#addresses").dispatchEvent(new ClipboardEvent("paste",
		{clipboardData: pasted, bubbles: true, cancelable: true}));
	return true; })()`

// TestPortalTakesLongLists: a list of 100,000 lines that is pasted goes round what a browser does
// with each line. It is there again after a reload, and one that cannot be says so.
func TestPortalTakesLongLists(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	const lines = `document.querySelector("#addresses")?.value.split("\n").length === 100000`
	v.goes("/", `document.querySelector("#addresses")`)
	asks[bool](v.person, pastes)
	v.sees(lines)
	v.do(chromedp.Reload())
	v.sees(lines)
	for range 2 { // is more than browsers keep
		asks[bool](v.person, pastes)
	}
	v.says("The list is too long to be kept over a reload of this page.")
	v.ends()
}
