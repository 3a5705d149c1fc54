package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
)

// newcomer is a person whose acts are counted.
type newcomer struct {
	*person
	clicked, entered int
}

func (n *newcomer) clicks(selector string) {
	n.t.Helper()
	n.clicked++
	n.person.clicks(selector)
}

func (n *newcomer) enters(selector, text string) {
	n.t.Helper()
	n.entered++
	n.sees(fmt.Sprintf("document.querySelector(%q)", selector))
	n.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// TestNewcomer runs the demo, opens the link that it prints, and goes on to the rows of an own
// list. It bounds what a person has to do. It prints how long the machine took, as nobody reads.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	shop := newShop(t)
	binary(t) // is built before the clock starts
	started := time.Now()
	demo := startsDemo(t, t.TempDir())
	link := demoLink.FindString(demo.Said())
	if link == "" {
		t.Fatalf("the demo prints no link: %s", demo.Said())
	}
	n := &newcomer{person: newPerson(t, path, demo.Server())}
	opened := time.Now()
	n.do(chromedp.Navigate(link))
	n.clicks("form button") // signs in
	n.enters("#addresses", fmt.Sprintf("http://%[1]s/list/1\nhttp://%[1]s/list/2\n"+
		"http://%[1]s/list/3", shop))
	n.clicks("form button")
	n.sees(`document.querySelector(".card td")`)
	first := time.Now()
	n.clicks(".card button")
	n.sees(`document.querySelector("#cap")?.value`)
	n.clicks("form button")
	n.sees(`document.querySelector(".state.completed, .state.success")`)
	n.clicks(".actions a")
	n.sees(`document.querySelector(".rows table")?.ariaRowCount === "73"`) // with the head
	t.Logf("the demo's link after %.1f s; then the first rows after %.1f s, those of an own list "+
		"of 3 pages after %.1f s, with %d clicks and %d entry", opened.Sub(started).Seconds(),
		first.Sub(opened).Seconds(), time.Since(opened).Seconds(), n.clicked, n.entered)
	if n.clicked > 5 || n.entered > 1 {
		t.Errorf("a newcomer needs %d clicks and %d entries, want 5 and 1", n.clicked, n.entered)
	}
	if _, err := demo.Stop(suite.StopLimit); err != nil {
		t.Fatal(err)
	}
}
