package e2e

import (
	"context"
	"net/http/httptrace"
	"sync"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/recount"
)

// copies of a notice are under way when the product is killed.
const copies = 8

// topUp requests 10 EUR under a key and returns the session. The product dies around two of its
// calls of the provider. The second leaves a session that nobody can pay: nobody has its address.
func (c *crashCase) topUp(f *till, key string) (session string) {
	c.T.Helper()
	tries := 0
	c.survive("top-up", func(ctx context.Context) error {
		token, err := c.p.Command(ctx, "token")
		if err != nil {
			return err
		}
		tries++
		f.arm(c.p.Kill, min(tries, 2), tries == 2) // before the first sale, and behind the second
		var out struct{ SessionID string }
		err = suite.Client{Server: c.Server, Token: token}.Again(key).Call(ctx, "POST",
			"/api/wallet/topup", nil, map[string]int{"amountCents": 1_000}, &out)
		session = out.SessionID
		return err
	})
	const want = "map[cs_1:open cs_2:open], the contract is active"
	if len(c.Deaths) != 2 || session != "cs_2" || f.state() != want {
		c.T.Fatalf("%d deaths, session %q: %s", len(c.Deaths), session, f.state())
	}
	return session
}

// killAmid delivers copies of a notice at once and kills the product: once all of them are sent, or
// at their first answer. What became of them is unknown then, and the provider sends the notice
// again.
func (c *crashCase) killAmid(kind string, object any, answered bool) {
	c.T.Helper()
	var all, sent sync.WaitGroup
	sent.Add(copies)
	first := make(chan struct{}, copies)
	for range copies {
		all.Go(func() {
			written := sync.OnceFunc(sent.Done)
			defer written()
			ctx := httptrace.WithClientTrace(suite.Within(c.T, suite.Patience),
				&httptrace.ClientTrace{
					WroteRequest: func(httptrace.WroteRequestInfo) { written() }})
			// It fails unless its answer was faster than the kill.
			_ = c.notice(kind, object)(ctx)
			first <- struct{}{}
		})
	}
	if sent.Wait(); answered {
		<-first
	}
	c.p.Kill()
	all.Wait()
	if !c.buried() {
		c.T.Fatal("the product survives its end")
	}
	c.bring()
}

// TestCrashesOfTopUps kills the process around the sale of a top-up, and among copies of each
// notice about its money. They tell of the payment, of a refund, of a dispute that takes the money,
// and of its end. Each movement is booked once, whatever the process had come to.
func TestCrashesOfTopUps(t *testing.T) {
	t.Parallel()
	c, f := selling(t)
	session := c.topUp(f, suite.NewKey())
	f.arm(nil, 0, false)
	refund := map[string]any{"id": "re_1", "object": "refund", "amount": 300, "currency": "eur",
		"payment_intent": "pi_1", "status": "succeeded"}
	dispute := map[string]any{"id": "du_1", "object": "dispute", "amount": 700, "currency": "eur",
		"payment_intent": "pi_1"}
	f.mu.Lock()
	paid := map[string]any{"id": session, "object": "checkout.session", "mode": "payment",
		"payment_status": "paid", "amount_total": 1_000, "currency": "eur",
		"payment_intent": "pi_1", "metadata": f.sold[session]}
	f.mu.Unlock()
	entries := 1 // the free grant
	for _, told := range []struct {
		kind    string
		object  any
		balance int64 // afterwards
	}{
		{"checkout.session.completed", paid, 10_000_000},
		{"refund.updated", refund, 7_000_000},
		{"charge.dispute.funds_withdrawn", dispute, 0},
		{"charge.dispute.funds_reinstated", dispute, 7_000_000},
	} {
		entries++
		for _, answered := range []bool{false, true} {
			c.killAmid(told.kind, told.object, answered)
			c.tell(told.kind, told.object)
			var wallet recount.Wallet
			var ledger []recount.Transaction
			c.survive("books", func(ctx context.Context) (err error) {
				if wallet, err = c.Wallet(ctx); err != nil {
					return err
				}
				ledger, err = c.Ledger(ctx)
				return err
			})
			if err := recount.CheckWallet(wallet, ledger); err != nil {
				t.Error(err)
			}
			if wallet.BalanceMicros != told.balance || len(ledger) != entries {
				t.Fatalf("after %s: %d, want %d; entries %+v", told.kind, wallet.BalanceMicros,
					told.balance, ledger)
			}
		}
	}
}
