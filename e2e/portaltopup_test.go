package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPortalTopsUp follows a customer to the checkout and back. The customer comes back before the
// payment is reported, after it, without having paid, and with the browser's own way back.
func TestPortalTopsUp(t *testing.T) {
	t.Parallel()
	till, flags := openCounter(t)
	v := newVisit(t, false, flags...)
	till.mu.Lock()
	till.back = v.Server
	till.mu.Unlock()

	v.topsUp("10")
	v.comesBack("#paid", "Thank you")
	v.says("The payment has not arrived yet.")
	asks[bool](v.person, `window.here = true`) // until the page is loaded again
	till.pays(v)
	v.says("The payment has arrived")
	v.owns("€1,010.00")
	v.sees(`document.querySelector("main tbody tr").innerText.includes("€10.00")`)
	if !asks[bool](v.person, `window.here === true`) {
		t.Error("the page was loaded again")
	}
	v.understands()

	v.topsUp("12.50")
	till.pays(v)
	v.comesBack("#paid", "Thank you")
	v.says("The payment has arrived")
	v.owns("€1,022.50")

	v.topsUp("20")
	v.comesBack("#left", "Payment canceled")
	v.says("If you have not, nothing was charged.")
	v.understands()
	v.do(chromedp.Reload())
	v.owns("€1,022.50")
	v.sees(`document.querySelector("main tbody tr") && !document.querySelector("main .note")`)

	v.topsUp("30")
	v.do(chromedp.NavigateBack())
	v.says("The payment has not arrived yet.")
	till.pays(v) // in another tab
	v.says("The payment has arrived")
	v.owns("€1,052.50")
	v.ends()
}

// topsUp goes to the checkout.
func (v *visit) topsUp(amount string) {
	v.person.t.Helper()
	v.goes("/wallet", `document.querySelector("#amount")`)
	v.enters("amount", amount)
	v.presses("Go to the payment")
	v.headed("Pay here")
}

// comesBack follows a link of the checkout, and goes on to the wallet.
func (v *visit) comesBack(by, heading string) {
	v.person.t.Helper()
	v.clicks(by)
	v.headed(heading)
	v.clicks(`a[href="/portal/wallet"]`)
	v.sees(`document.querySelector("#amount")`)
}

// owns waits until the head and the page show a balance.
func (v *visit) owns(balance string) {
	v.person.t.Helper()
	v.sees(fmt.Sprintf(`document.querySelector(".balance strong")?.innerText === %[1]q &&
		document.querySelector("main .fact dd")?.innerText === %[1]q`, balance))
}

// understands dismisses what the page says of the newest checkout.
func (v *visit) understands() {
	v.person.t.Helper()
	v.presses("Understood")
	v.sees(`!document.querySelector("main .note")`)
}
